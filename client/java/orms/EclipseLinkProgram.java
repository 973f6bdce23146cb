// SPDX-License-Identifier: PostgreSQL

import jakarta.persistence.EntityManagerFactory;
import jakarta.persistence.Persistence;
import java.util.HashMap;
import java.util.Map;

/** The cases by EclipseLink. */
public final class EclipseLinkProgram {
    private EclipseLinkProgram() {
    }

    /** Arguments: URL, user, mode of exclusive connections. */
    public static void main(String[] arguments) throws Exception {
        try (Harness harness = new Harness(arguments)) {
            Map<String, Object> settings = new HashMap<>();
            settings.put("jakarta.persistence.nonJtaDataSource", harness.pool);
            settings.put("eclipselink.weaving", "false");
            settings.put("eclipselink.cache.shared.default", "false");
            settings.put("eclipselink.jdbc.batch-writing", "JDBC");
            settings.put("eclipselink.logging.level", "OFF");
            settings.put("eclipselink.jdbc.exclusive-connection.mode", arguments[2]);
            EntityManagerFactory factory = Persistence.createEntityManagerFactory("orms", settings);
            PersistenceCases cases = new PersistenceCases(harness, factory);
            for (String kind : new String[] {"IN", "JOIN", "EXISTS"}) {
                harness.good("batch fetch, " + kind, () -> cases.inTransaction(manager -> PersistenceCases.read(
                        manager.createQuery("select a from Author a order by a.id", Entities.Author.class)
                                .setHint("eclipselink.batch", "a.books").setHint("eclipselink.batch.type", kind)
                                .setHint("eclipselink.batch.size", "10").getResultList())));
            }
            cases.run();
            factory.close();
        }
    }
}
