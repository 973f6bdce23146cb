// SPDX-License-Identifier: PostgreSQL

import static org.jooq.impl.DSL.field;
import static org.jooq.impl.DSL.multiset;
import static org.jooq.impl.DSL.select;
import static org.jooq.impl.DSL.table;

import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jooq.DSLContext;
import org.jooq.Field;
import org.jooq.Record;
import org.jooq.SQLDialect;
import org.jooq.Table;
import org.jooq.impl.DSL;

/** The cases by jOOQ. */
public final class JooqProgram {
    private static final Table<Record> AUTHOR = table("author");
    private static final Table<Record> BOOK = table("book");
    private static final Field<Integer> ID = field("author.id", Integer.class);
    private static final Field<String> NAME = field("author.name", String.class);
    private static final Field<Integer> AUTHOR_ID = field("book.author_id", Integer.class);
    private static final Field<String> TITLE = field("book.title", String.class);

    private JooqProgram() {
    }

    /** Arguments: URL, user. */
    public static void main(String[] arguments) throws Exception {
        System.setProperty("org.jooq.no-logo", "true");
        System.setProperty("org.jooq.no-tips", "true");
        try (Harness harness = new Harness(arguments)) {
            DSLContext create = DSL.using(harness.pool, SQLDialect.POSTGRES);
            harness.bad("a query for each row", () -> create.transaction(inner -> {
                for (int id : inner.dsl().select(ID).from(AUTHOR).fetch(ID)) {
                    inner.dsl().select(TITLE).from(BOOK).where(AUTHOR_ID.eq(id)).fetch();
                }
            }));
            harness.bad("a query for each row, without a transaction", () -> create.connection(connection -> {
                DSLContext one = DSL.using(connection, SQLDialect.POSTGRES);
                for (int id : one.select(ID).from(AUTHOR).fetch(ID)) {
                    one.select(TITLE).from(BOOK).where(AUTHOR_ID.eq(id)).fetch();
                }
            }));
            harness.bad("an update for each row", () -> create.transaction(inner -> {
                for (int id = 1; id <= Harness.MANY; id++) {
                    inner.dsl().update(AUTHOR).set(field("name", String.class), "n" + id).where(field("id", Integer.class).eq(id)).execute();
                }
            }));
            harness.good("join", () -> create.transaction(inner -> inner.dsl().select(NAME, TITLE).from(AUTHOR).join(BOOK)
                    .on(AUTHOR_ID.eq(ID)).fetch()));
            harness.good("multiset", () -> create.transaction(inner -> Harness.check(inner.dsl()
                    .select(ID, multiset(select(TITLE).from(BOOK).where(AUTHOR_ID.eq(ID)))).from(AUTHOR).fetch().size()
                    == Harness.MANY)));
            harness.good("lists of keys", () -> create.transaction(inner -> {
                for (int i = 0; i < Harness.MANY; i += 10) {
                    List<Integer> ids = IntStream.range(i, i + 10).boxed().collect(Collectors.toList());
                    inner.dsl().select(TITLE).from(BOOK).where(AUTHOR_ID.in(ids)).fetch();
                }
            }));
            harness.good("batch", () -> create.transaction(inner -> inner.dsl().batch(
                    IntStream.range(0, Harness.NEW).mapToObj(i -> inner.dsl().insertInto(BOOK, field("id", Long.class),
                            field("title", String.class)).values(30_000L + i, "many " + i)).collect(Collectors.toList()))
                    .execute()));
            harness.good("rows of values", () -> create.transaction(inner -> {
                for (int i = 0; i < Harness.REQUESTS; i++) {
                    inner.dsl().insertInto(BOOK, field("id", Long.class), field("title", String.class))
                            .values(40_000L + 2 * i, "even").values(40_001L + 2 * i, "odd").execute();
                }
            }));
            harness.good("a sequence that gives fifty at once", () -> create.transaction(inner -> {
                for (int i = 0; i < Harness.REQUESTS; i++) {
                    inner.dsl().nextval("book_numbers");
                }
            }));
            harness.good("requests with a transaction each", () -> {
                for (int i = 1; i <= Harness.REQUESTS; i++) {
                    int id = i;
                    create.transaction(inner -> inner.dsl().select(NAME).from(AUTHOR).where(ID.eq(id)).fetch());
                }
            });
            harness.good("requests without a transaction", () -> {
                for (int i = 1; i <= Harness.REQUESTS; i++) {
                    create.select(NAME).from(AUTHOR).where(ID.eq(i)).fetch();
                }
            });
            harness.ofThePool();
        }
    }
}
