// SPDX-License-Identifier: PostgreSQL

import java.util.List;
import java.util.Map;
import org.apache.ibatis.annotations.Insert;
import org.apache.ibatis.annotations.Many;
import org.apache.ibatis.annotations.Param;
import org.apache.ibatis.annotations.Result;
import org.apache.ibatis.annotations.Results;
import org.apache.ibatis.annotations.Select;
import org.apache.ibatis.mapping.Environment;
import org.apache.ibatis.session.Configuration;
import org.apache.ibatis.session.ExecutorType;
import org.apache.ibatis.session.SqlSession;
import org.apache.ibatis.session.SqlSessionFactory;
import org.apache.ibatis.session.SqlSessionFactoryBuilder;
import org.apache.ibatis.transaction.jdbc.JdbcTransactionFactory;

/** The cases by MyBatis. */
public final class MyBatisProgram {
    private MyBatisProgram() {
    }

    /** Has three books. */
    public static class Author {
        public Integer id;
        public String name;
        public List<String> books;
    }

    /** The statements. */
    public interface Mapper {
        /** Titles of an author's books. */
        @Select("select title from book where author_id = #{id}")
        List<String> books(int id);

        /** Authors, with a statement for the books of each. */
        @Select("select id, name from author order by id")
        @Results({@Result(property = "id", column = "id"),
            @Result(property = "books", column = "id", javaType = List.class, many = @Many(select = "books"))})
        List<Author> authorsWithBooks();

        /** Authors and books. */
        @Select("select a.name, b.title from author a join book b on b.author_id = a.id")
        List<Map<String, Object>> joined();

        /** An author's name. */
        @Select("select name from author where id = #{id}")
        String name(int id);

        /** Books of several authors. */
        @Select("<script>select title from book where author_id in"
                + " <foreach item='id' collection='ids' open='(' separator=',' close=')'>#{id}</foreach></script>")
        List<String> booksOf(@Param("ids") List<Integer> ids);

        /** A new book. */
        @Insert("insert into book (id, title) values (#{id}, #{title})")
        void add(@Param("id") long id, @Param("title") String title);
    }

    /** Arguments: URL, user. */
    public static void main(String[] arguments) throws Exception {
        try (Harness harness = new Harness(arguments)) {
            Configuration configuration = new Configuration(new Environment("orms", new JdbcTransactionFactory(), harness.pool));
            configuration.addMapper(Mapper.class);
            SqlSessionFactory factory = new SqlSessionFactoryBuilder().build(configuration);
            harness.bad("nested select", () -> {
                try (SqlSession session = factory.openSession(false)) {
                    Harness.check(session.getMapper(Mapper.class).authorsWithBooks().size() == Harness.MANY);
                    session.commit();
                }
            });
            harness.bad("nested select without a transaction", () -> {
                try (SqlSession session = factory.openSession(true)) {
                    Harness.check(session.getMapper(Mapper.class).authorsWithBooks().size() == Harness.MANY);
                }
            });
            harness.bad("a select in a loop", () -> {
                try (SqlSession session = factory.openSession(false)) {
                    for (int i = 1; i <= Harness.MANY; i++) {
                        session.getMapper(Mapper.class).name(i);
                    }
                }
            });
            harness.bad("an insert for each row", () -> {
                try (SqlSession session = factory.openSession(false)) {
                    for (int i = 0; i < Harness.REQUESTS; i++) {
                        session.getMapper(Mapper.class).add(10_000 + i, "one " + i);
                    }
                    session.commit();
                }
            });
            harness.good("join", () -> {
                try (SqlSession session = factory.openSession(false)) {
                    Harness.check(session.getMapper(Mapper.class).joined().size() >= 3 * Harness.MANY);
                }
            });
            harness.good("foreach", () -> {
                try (SqlSession session = factory.openSession(false)) {
                    for (int i = 0; i < Harness.MANY; i += 10) {
                        session.getMapper(Mapper.class).booksOf(List.of(i + 1, i + 2, i + 3, i + 4, i + 5));
                    }
                }
            });
            harness.good("executor BATCH", () -> {
                try (SqlSession session = factory.openSession(ExecutorType.BATCH, false)) {
                    for (int i = 0; i < Harness.NEW; i++) {
                        session.getMapper(Mapper.class).add(20_000 + i, "many " + i);
                    }
                    session.commit();
                }
            });
            harness.good("requests with a transaction each", () -> {
                for (int i = 1; i <= Harness.REQUESTS; i++) {
                    try (SqlSession session = factory.openSession(false)) {
                        session.getMapper(Mapper.class).books(i);
                        session.commit();
                    }
                }
            });
            harness.good("requests without a transaction", () -> {
                for (int i = 1; i <= Harness.REQUESTS; i++) {
                    try (SqlSession session = factory.openSession(true)) {
                        session.getMapper(Mapper.class).books(i);
                    }
                }
            });
            harness.ofThePool();
        }
    }
}
