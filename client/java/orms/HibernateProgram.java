// SPDX-License-Identifier: PostgreSQL

import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.boot.registry.StandardServiceRegistryBuilder;
import org.hibernate.boot.MetadataSources;

/** The cases by Hibernate. */
public final class HibernateProgram {
    private HibernateProgram() {
    }

    /** Arguments: URL, user. */
    public static void main(String[] arguments) throws Exception {
        try (Harness harness = new Harness(arguments)) {
            var registry = new StandardServiceRegistryBuilder()
                    .applySetting("jakarta.persistence.nonJtaDataSource", harness.pool)
                    .applySetting("hibernate.jdbc.batch_size", "50").build();
            SessionFactory factory = new MetadataSources(registry).addAnnotatedClasses(Entities.Author.class, Entities.Book.class,
                    Entities.Person.class, Entities.Passport.class).buildMetadata().buildSessionFactory();
            PersistenceCases cases = new PersistenceCases(harness, factory);
            harness.good("batch fetch", () -> cases.inTransaction(manager -> {
                Session session = manager.unwrap(Session.class);
                session.setFetchBatchSize(10);
                PersistenceCases.read(session.createQuery("select a from Author a order by a.id", Entities.Author.class)
                        .getResultList());
            }));
            harness.good("subselect fetch", () -> cases.inTransaction(manager -> {
                Session session = manager.unwrap(Session.class);
                session.setSubselectFetchingEnabled(true);
                PersistenceCases.read(session.createQuery("select a from Author a order by a.id", Entities.Author.class)
                        .getResultList());
            }));
            cases.run();
            factory.close();
        }
    }
}
