// SPDX-License-Identifier: PostgreSQL

import jakarta.persistence.EntityManagerFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import javax.sql.DataSource;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.domain.PageRequest;
import org.springframework.data.jpa.repository.EntityGraph;
import org.springframework.data.jpa.repository.JpaRepository;
import org.springframework.data.jpa.repository.Query;
import org.springframework.data.jpa.repository.config.EnableJpaRepositories;
import org.springframework.orm.jpa.JpaTransactionManager;
import org.springframework.orm.jpa.LocalContainerEntityManagerFactoryBean;
import org.springframework.orm.jpa.vendor.HibernateJpaVendorAdapter;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** The cases by Spring Data JPA, with Hibernate. */
public final class SpringDataProgram {
    private static DataSource pool;

    private SpringDataProgram() {
    }

    /** Repository of authors. */
    public interface Authors extends JpaRepository<Entities.Author, Integer> {
        /** Authors with their books, by a join. */
        @EntityGraph(attributePaths = "books")
        @Query("select a from Author a")
        List<Entities.Author> withBooks();
    }

    /** Repository of books. */
    public interface Books extends JpaRepository<Entities.Book, Long> {
        /** Books of an author. */
        List<Entities.Book> findByAuthorId(Integer id);
    }

    /** Repository of persons. */
    public interface Persons extends JpaRepository<Entities.Person, Integer> {
    }

    /** The application. */
    @Configuration
    @EnableJpaRepositories(considerNestedRepositories = true)
    public static class Application {
        /** The entities. */
        @Bean
        public LocalContainerEntityManagerFactoryBean entityManagerFactory() {
            LocalContainerEntityManagerFactoryBean factory = new LocalContainerEntityManagerFactoryBean();
            factory.setDataSource(pool);
            factory.setJpaVendorAdapter(new HibernateJpaVendorAdapter());
            factory.setManagedTypes(org.springframework.orm.jpa.persistenceunit.PersistenceManagedTypes.of(
                    Entities.Author.class.getName(), Entities.Book.class.getName(), Entities.Person.class.getName(),
                    Entities.Passport.class.getName()));
            factory.getJpaPropertyMap().put("hibernate.jdbc.batch_size", "50");
            return factory;
        }

        /** Transactions. */
        @Bean
        public PlatformTransactionManager transactionManager(EntityManagerFactory factory) {
            return new JpaTransactionManager(factory);
        }
    }

    /** Arguments: URL, user. */
    public static void main(String[] arguments) throws Exception {
        try (Harness harness = new Harness(arguments)) {
            pool = harness.pool;
            try (AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext(Application.class)) {
                run(harness, context);
            }
        }
    }

    private static void run(Harness harness, AnnotationConfigApplicationContext context) throws Exception {
        TransactionTemplate transaction = new TransactionTemplate(context.getBean(PlatformTransactionManager.class));
        Authors authors = context.getBean(Authors.class);
        Books books = context.getBean(Books.class);
        Persons persons = context.getBean(Persons.class);
        harness.bad("findAll, and each author's books", () -> transaction.executeWithoutResult(status ->
                PersistenceCases.read(authors.findAll())));
        harness.bad("findAll with a one-to-one on the other side", () -> Harness.check(persons.findAll().size() == Harness.MANY));
        harness.bad("findById in a loop", () -> transaction.executeWithoutResult(status -> {
            for (long id = 1; id <= Harness.MANY; id++) {
                books.findById(id);
            }
        }));
        harness.bad("a derived query in a loop", () -> transaction.executeWithoutResult(status -> {
            for (int id = 1; id <= Harness.MANY; id++) {
                books.findByAuthorId(id);
            }
        }));
        harness.good("an entity graph", () -> transaction.executeWithoutResult(status -> PersistenceCases.read(authors.withBooks())));
        harness.good("findAllById", () -> transaction.executeWithoutResult(status -> {
            for (long i = 0; i < Harness.MANY; i += 10) {
                books.findAllById(LongStream.rangeClosed(i + 1, i + 10).boxed().collect(Collectors.toList()));
            }
        }));
        harness.good("saveAll, a sequence with allocation, and batches", () -> {
            List<Entities.Book> more = new ArrayList<>();
            for (int i = 0; i < Harness.NEW; i++) {
                Entities.Book book = new Entities.Book();
                book.title = "new " + i;
                more.add(book);
            }
            books.saveAll(more);
        });
        harness.good("pages, each with a transaction of its own", () -> {
            for (int i = 0; i < Harness.REQUESTS; i++) {
                books.findAll(PageRequest.of(i, 5));
            }
        });
        harness.good("requests with a transaction each", () -> {
            for (int i = 1; i <= Harness.REQUESTS; i++) {
                Harness.check(authors.findById(i).isPresent());
            }
        });
        harness.ofThePool();
    }
}
