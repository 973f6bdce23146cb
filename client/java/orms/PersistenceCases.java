// SPDX-License-Identifier: PostgreSQL

import jakarta.persistence.EntityManager;
import jakarta.persistence.EntityManagerFactory;
import java.util.List;
import java.util.function.Consumer;

/** The cases that are the same for all implementations of Jakarta Persistence. */
final class PersistenceCases {
    private final Harness harness;
    private final EntityManagerFactory factory;

    PersistenceCases(Harness harness, EntityManagerFactory factory) {
        this.harness = harness;
        this.factory = factory;
    }

    void inTransaction(Consumer<EntityManager> work) {
        with(manager -> {
            manager.getTransaction().begin();
            work.accept(manager);
            manager.getTransaction().commit();
        });
    }

    private void with(Consumer<EntityManager> work) {
        EntityManager manager = factory.createEntityManager();
        try {
            work.accept(manager);
        } finally {
            manager.close();
        }
    }

    private static List<Entities.Author> authors(EntityManager manager) {
        return manager.createQuery("select a from Author a order by a.id", Entities.Author.class).getResultList();
    }

    static void read(List<Entities.Author> authors) {
        Harness.check(authors.size() == Harness.MANY);
        for (Entities.Author author : authors) {
            Harness.check(author.books.size() >= 3);
        }
    }

    void run() throws Exception {
        harness.bad("lazy one-to-many in a transaction", () -> inTransaction(manager -> read(authors(manager))));
        harness.bad("lazy one-to-many without a transaction", () -> with(manager -> read(authors(manager))));
        harness.bad("one-to-one whose key is on the other side", () -> inTransaction(manager -> Harness.check(
                manager.createQuery("select p from Person p", Entities.Person.class).getResultList().size() == Harness.MANY)));
        harness.bad("find by key in a loop", () -> inTransaction(manager -> {
            for (int i = 1; i <= Harness.MANY; i++) {
                Harness.check(manager.find(Entities.Book.class, (long) i) != null);
            }
        }));
        harness.bad("a query in a loop", () -> inTransaction(manager -> {
            for (int i = 1; i <= Harness.MANY; i++) {
                manager.createQuery("select b.title from Book b where b.author.id = :id", String.class).setParameter("id", i)
                        .getResultList();
            }
        }));
        harness.good("join fetch", () -> inTransaction(manager -> read(manager.createQuery(
                "select distinct a from Author a join fetch a.books order by a.id", Entities.Author.class).getResultList())));
        harness.good("rows of a list of keys", () -> inTransaction(manager -> {
            for (int i = 0; i < Harness.MANY; i += 10) {
                // Titles: EclipseLink would read the author of each book by a statement of its own.
                Harness.check(manager.createQuery("select b.title from Book b where b.id in :ids", String.class)
                        .setParameter("ids", List.of(i + 1L, i + 2L, i + 3L, i + 4L, i + 5L, i + 6L, i + 7L, i + 8L, i + 9L, i + 10L))
                        .getResultList().size() == 10);
            }
        }));
        harness.good("a sequence with allocation, and batches", () -> inTransaction(manager -> {
            for (int i = 0; i < Harness.NEW; i++) {
                Entities.Book book = new Entities.Book();
                book.title = "new " + i;
                manager.persist(book);
            }
        }));
        harness.good("requests with a transaction each", () -> {
            for (int i = 1; i <= Harness.REQUESTS; i++) {
                int id = i;
                inTransaction(manager -> Harness.check(manager.find(Entities.Author.class, id) != null));
            }
        });
        harness.good("requests without a transaction", () -> {
            for (int i = 1; i <= Harness.REQUESTS; i++) {
                int id = i;
                with(manager -> Harness.check(manager.find(Entities.Author.class, id) != null));
            }
        });
        harness.good("ten children", () -> inTransaction(manager -> {
            for (Entities.Author author : manager.createQuery("select a from Author a where a.id <= 10", Entities.Author.class)
                    .getResultList()) {
                author.books.size();
            }
        }));
        harness.ofThePool();
    }
}
