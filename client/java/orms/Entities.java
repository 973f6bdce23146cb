// SPDX-License-Identifier: PostgreSQL

import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OneToOne;
import jakarta.persistence.SequenceGenerator;
import jakarta.persistence.Table;
import java.util.ArrayList;
import java.util.List;

/** The entities of the programs that use Jakarta Persistence. */
public final class Entities {
    private Entities() {
    }

    /** Has three books. */
    @Entity(name = "Author")
    @Table(name = "author")
    public static class Author {
        @Id
        public Integer id;
        public String name;
        @OneToMany(mappedBy = "author", fetch = FetchType.LAZY)
        public List<Book> books = new ArrayList<>();
    }

    /** Has a number of a sequence. */
    @Entity(name = "Book")
    @Table(name = "book")
    public static class Book {
        @Id
        @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "numbers")
        @SequenceGenerator(name = "numbers", sequenceName = "book_numbers", allocationSize = 50)
        public Long id;
        public String title;
        @ManyToOne(fetch = FetchType.LAZY)
        @JoinColumn(name = "author_id")
        public Author author;
    }

    /** Has a passport, which only the passport's row tells. */
    @Entity(name = "Person")
    @Table(name = "person")
    public static class Person {
        @Id
        public Integer id;
        public String name;
        @OneToOne(mappedBy = "person")
        public Passport passport;
    }

    /** Is a person's. */
    @Entity(name = "Passport")
    @Table(name = "passport")
    public static class Passport {
        @Id
        public Integer id;
        public String number;
        @OneToOne(fetch = FetchType.LAZY)
        @JoinColumn(name = "person_id")
        public Person person;
    }
}
