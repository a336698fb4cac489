// What a JDBC program that changes tables does, with any Arrow Flight SQL JDBC driver on the class path.
//
//   java --add-opens=java.base/java.nio=ALL-UNNAMED -cp DRIVER.jar clients/java/Changes.java \
//     'jdbc:arrow-flight-sql://127.0.0.1:31337/?useEncryption=false' CHECK
//
// Makes tables in a new schema `jdbc` and leaves them there for others to read. Prints one `name<TAB>value` line for
// each thing found, and `FAIL<TAB>name<TAB>message` for each that threw. Ends with System.exit, because the driver
// keeps threads alive.

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Time;
import java.sql.Timestamp;
import java.sql.Types;
import java.util.Arrays;
import java.util.Calendar;
import java.util.TimeZone;

public class Changes {
    private static boolean failed = false;

    interface Check {
        Object run() throws Exception;
    }

    interface Setter {
        void set(PreparedStatement statement, int at) throws SQLException;
    }

    private static void check(String name, Check check) {
        try {
            System.out.println(name + "\t" + check.run());
        } catch (Throwable error) {
            failed = true;
            System.out.println("FAIL\t" + name + "\t" + oneLine(error));
        }
    }

    /** For what may be refused by the driver: what it did, or that it threw. */
    private static void attempt(String name, Check check) {
        try {
            System.out.println(name + "\t" + check.run());
        } catch (Throwable error) {
            System.out.println(name + "\tthrew " + oneLine(error));
        }
    }

    private static String oneLine(Throwable error) {
        return error.toString().replace('\n', ' ').replace('\t', ' ');
    }

    /** What a statement says of itself once it was executed: a result or not, the count, and that nothing follows. */
    private static String told(Statement statement, boolean isQuery) throws SQLException {
        String first = isQuery + " " + statement.getUpdateCount() + " " + (statement.getResultSet() == null ? "none" : "rows");
        boolean more = statement.getMoreResults();
        return first + ", then " + more + " " + statement.getUpdateCount();
    }

    private static void statements(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            check("is read-only", () -> connection.getMetaData().isReadOnly());
            check("create schema", () -> statement.executeUpdate("CREATE SCHEMA jdbc"));
            check("create table", () -> statement.executeUpdate("CREATE TABLE jdbc.t (id BIGINT NOT NULL, name STRING)"));
            check("insert", () -> statement.executeUpdate("INSERT INTO jdbc.t VALUES (1, 'a'), (2, NULL)"));
            check("insert of a query", () -> statement.executeUpdate("INSERT INTO jdbc.t SELECT id + 10, name FROM jdbc.t"));
            check("insert of nothing", () -> statement.executeUpdate("INSERT INTO jdbc.t SELECT * FROM jdbc.t WHERE false"));
            check("large insert", () -> statement.executeLargeUpdate("INSERT INTO jdbc.t VALUES (20, 'l')"));
            check("create table as", () -> statement.executeUpdate("CREATE TABLE jdbc.copy AS SELECT * FROM jdbc.t"));
            check("execute insert", () -> told(statement, statement.execute("INSERT INTO jdbc.t VALUES (30, 'e'), (31, 'e'), (32, 'e')")));
            check("execute create", () -> told(statement, statement.execute("CREATE TABLE jdbc.u (id BIGINT)")));
            check("execute drop", () -> told(statement, statement.execute("DROP TABLE jdbc.u")));
            check("execute select", () -> {
                boolean isQuery = statement.execute("SELECT count(*) FROM jdbc.t");
                try (ResultSet result = statement.getResultSet()) {
                    result.next();
                    return isQuery + " " + statement.getUpdateCount() + " " + result.getLong(1);
                }
            });
        }
        // A statement of its own: the driver may have closed it.
        attempt("query that inserts", () -> {
            try (Statement statement = connection.createStatement();
                    ResultSet result = statement.executeQuery("INSERT INTO jdbc.t VALUES (40, 'q')")) {
                return "a result";
            }
        });
        attempt("update that selects", () -> {
            try (Statement statement = connection.createStatement()) {
                return statement.executeUpdate("SELECT 1");
            }
        });
        attempt("batch of statements", () -> {
            try (Statement statement = connection.createStatement()) {
                statement.addBatch("INSERT INTO jdbc.t VALUES (50, 'b')");
                statement.addBatch("INSERT INTO jdbc.t VALUES (51, 'b'), (52, 'b')");
                return Arrays.toString(statement.executeBatch());
            }
        });
        attempt("insert that fails", () -> {
            try (Statement statement = connection.createStatement()) {
                return statement.executeUpdate("INSERT INTO jdbc.t VALUES (60, 'f'), (NULL, 'f')");
            }
        });
        try (Statement statement = connection.createStatement()) {
            check("drop table", () -> statement.executeUpdate("DROP TABLE jdbc.copy"));
            check("make and drop a schema", () -> statement.executeUpdate("CREATE SCHEMA gone") + statement.executeUpdate("DROP SCHEMA gone"));
        }
    }

    /** One column of `jdbc.types`, set in a way of its own and left null: all of one kind in one row. */
    private static void values(Connection connection) throws SQLException {
        String[] columns = {"flag BOOLEAN", "i INT", "l BIGINT", "f REAL", "d DOUBLE", "n DECIMAL(12, 3)", "s STRING",
            "y BINARY", "x FIXED(3)", "day DATE", "tm TIME", "ts TIMESTAMP", "tz TIMESTAMPTZ", "u UUID"};
        int[] kinds = {Types.BOOLEAN, Types.INTEGER, Types.BIGINT, Types.REAL, Types.DOUBLE, Types.DECIMAL, Types.VARCHAR,
            Types.VARBINARY, Types.BINARY, Types.DATE, Types.TIME, Types.TIMESTAMP, Types.TIMESTAMP, Types.VARCHAR};
        long moment = 1709168523004L; // 2024-02-29 01:02:03.004 UTC
        Setter[] setters = {
            (p, at) -> p.setBoolean(at, true),
            (p, at) -> p.setInt(at, -7),
            (p, at) -> p.setLong(at, Long.MIN_VALUE),
            (p, at) -> p.setFloat(at, 1.5f),
            (p, at) -> p.setDouble(at, 0.1),
            (p, at) -> p.setBigDecimal(at, new BigDecimal("-12.500")),
            (p, at) -> p.setString(at, "h\u00e9 '\"; \ud83d\ude00"),
            (p, at) -> p.setBytes(at, new byte[] {0, (byte) 0xff, 65}),
            (p, at) -> p.setBytes(at, new byte[] {1, 2, 3}),
            (p, at) -> p.setDate(at, Date.valueOf("1969-12-31")),
            (p, at) -> p.setTime(at, Time.valueOf("23:59:58")),
            (p, at) -> p.setTimestamp(at, new Timestamp(moment)),
            (p, at) -> p.setTimestamp(at, new Timestamp(moment)),
            (p, at) -> p.setString(at, "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        };
        Object[] objects = {false, 8, 9L, 2.5f, 0.2, new BigDecimal("3.125"), "o", new byte[] {9}, new byte[] {4, 5, 6},
            Date.valueOf("2024-02-29"), Time.valueOf("00:00:01"), new Timestamp(moment), new Timestamp(moment),
            "00000000-0000-4000-8000-000000000001"};
        try (Statement statement = connection.createStatement()) {
            check("create", () -> statement.executeUpdate("CREATE TABLE jdbc.types (kind STRING, " + String.join(", ", columns) + ")"));
        }
        for (int at = 0; at < columns.length; at++) {
            String column = columns[at].split(" ")[0];
            Setter setter = setters[at];
            int kind = kinds[at];
            Object object = objects[at];
            String sql = "INSERT INTO jdbc.types (kind, " + column + ") VALUES (?, ?)";
            check("set " + column, () -> one(connection, sql, "set", setter));
            check("null " + column, () -> one(connection, sql, "null", (p, i) -> p.setNull(i, kind)));
            check("object " + column, () -> one(connection, sql, "object", (p, i) -> p.setObject(i, object)));
        }
        check("all at once", () -> {
            String sql = "INSERT INTO jdbc.types VALUES (?" + ", ?".repeat(columns.length) + ")";
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                statement.setString(1, "all");
                for (int at = 0; at < setters.length; at++) {
                    setters[at].set(statement, at + 2);
                }
                return statement.getParameterMetaData().getParameterCount() + " " + statement.executeUpdate();
            }
        });
    }

    /** Moments of a program that is not in UTC. */
    private static void zones(Connection connection) throws SQLException {
        Timestamp moment = new Timestamp(1709168523004L); // 2024-02-29 01:02:03.004 UTC
        Calendar utc = Calendar.getInstance(TimeZone.getTimeZone("UTC"));
        try (Statement statement = connection.createStatement()) {
            check("create", () -> statement.executeUpdate("CREATE TABLE jdbc.z (kind STRING, ts TIMESTAMP, tz TIMESTAMPTZ)"));
        }
        String sql = "INSERT INTO jdbc.z (kind, ts, tz) VALUES (?, ?, ?)";
        check("plain", () -> {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                statement.setString(1, "plain");
                statement.setTimestamp(2, moment);
                statement.setTimestamp(3, moment);
                return statement.executeUpdate();
            }
        });
        check("with a calendar", () -> {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                statement.setString(1, "calendar");
                statement.setTimestamp(2, moment, utc);
                statement.setTimestamp(3, moment, utc);
                return statement.executeUpdate();
            }
        });
    }

    private static int one(Connection connection, String sql, String kind, Setter setter) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, kind);
            setter.set(statement, 2);
            return statement.executeUpdate();
        }
    }

    private static void prepared(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            check("create", () -> statement.executeUpdate("CREATE TABLE jdbc.p (id BIGINT NOT NULL, name STRING)"));
        }
        String sql = "INSERT INTO jdbc.p VALUES (?, ?)";
        check("again with other values", () -> {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                StringBuilder counts = new StringBuilder();
                for (int id = 1; id <= 3; id++) {
                    statement.setLong(1, id);
                    statement.setString(2, "n" + id);
                    counts.append(statement.executeUpdate()).append(" ");
                }
                return counts;
            }
        });
        check("execute", () -> {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                statement.setInt(1, 10);
                statement.setNull(2, Types.VARCHAR);
                boolean isQuery = statement.execute();
                return isQuery + " " + statement.getUpdateCount();
            }
        });
        check("two at once", () -> {
            try (PreparedStatement one = connection.prepareStatement(sql); PreparedStatement two = connection.prepareStatement(sql)) {
                one.setLong(1, 20);
                two.setLong(1, 21);
                one.setString(2, "one");
                two.setString(2, "two");
                return two.executeUpdate() + " " + one.executeUpdate();
            }
        });
        check("without values", () -> {
            try (PreparedStatement statement =
                    connection.prepareStatement("INSERT INTO jdbc.p SELECT id + 100, name FROM jdbc.p WHERE id < 3")) {
                return statement.executeUpdate();
            }
        });
        check("a query's condition", () -> {
            try (PreparedStatement statement =
                    connection.prepareStatement("INSERT INTO jdbc.p SELECT id + ?, name FROM jdbc.p WHERE id = ?")) {
                statement.setLong(1, 200);
                statement.setLong(2, 3);
                return statement.executeUpdate();
            }
        });
        attempt("query that inserts", () -> {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                statement.setLong(1, 30);
                statement.setString(2, "q");
                try (ResultSet result = statement.executeQuery()) {
                    return "a result";
                }
            }
        });
        attempt("a null that must not be", () -> {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                statement.setNull(1, Types.BIGINT);
                statement.setString(2, "x");
                return statement.executeUpdate();
            }
        });
        attempt("after an error", () -> {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                statement.setNull(1, Types.BIGINT);
                statement.setString(2, "x");
                try {
                    statement.executeUpdate();
                    return "accepted";
                } catch (SQLException refused) {
                    statement.setLong(1, 50);
                    statement.setString(2, "after");
                    return statement.executeUpdate();
                }
            }
        });
        check("made by prepared statements", () -> {
            int sum = 0;
            String[] all = {"CREATE SCHEMA jdbc2", "CREATE TABLE jdbc2.t AS SELECT 1 AS a", "DROP TABLE jdbc2.t", "DROP SCHEMA jdbc2"};
            for (String one : all) {
                try (PreparedStatement statement = connection.prepareStatement(one)) {
                    sum += statement.executeUpdate();
                }
            }
            return sum;
        });
    }

    /** Values that the drivers themselves refuse; they free less than they should then. */
    private static void refused(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            check("create", () -> statement.executeUpdate("CREATE TABLE jdbc.r (id BIGINT, n DECIMAL(12, 3))"));
        }
        String sql = "INSERT INTO jdbc.r VALUES (?, ?)";
        attempt("text for a number", () -> {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                statement.setString(1, "one");
                statement.setBigDecimal(2, new BigDecimal("1.000"));
                return statement.executeUpdate();
            }
        });
        attempt("another scale", () -> {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                statement.setLong(1, 2);
                statement.setBigDecimal(2, new BigDecimal("12.5"));
                return statement.executeUpdate();
            }
        });
        attempt("a value is missing", () -> {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                statement.setLong(1, 3);
                return statement.executeUpdate();
            }
        });
    }

    private static void batches(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            check("create", () -> statement.executeUpdate("CREATE TABLE jdbc.b (id BIGINT NOT NULL, name STRING)"));
        }
        String sql = "INSERT INTO jdbc.b VALUES (?, ?)";
        attempt("three", () -> {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                for (int id = 1; id <= 3; id++) {
                    statement.setLong(1, id);
                    statement.setString(2, id == 2 ? null : "b" + id);
                    statement.addBatch();
                }
                return Arrays.toString(statement.executeBatch());
            }
        });
        attempt("again", () -> {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                StringBuilder out = new StringBuilder();
                for (int round = 1; round <= 2; round++) {
                    for (int id = 1; id <= 2; id++) {
                        statement.setLong(1, round * 10 + id);
                        statement.setString(2, "again");
                        statement.addBatch();
                    }
                    out.append(Arrays.toString(statement.executeBatch()));
                }
                return out;
            }
        });
        attempt("many", () -> {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                for (int id = 1000; id < 11000; id++) {
                    statement.setLong(1, id);
                    statement.setString(2, "many");
                    statement.addBatch();
                }
                int[] counts = statement.executeBatch();
                return counts.length + " " + Arrays.stream(counts).sum();
            }
        });
        attempt("one that fails", () -> {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                statement.setLong(1, 60);
                statement.setString(2, "good");
                statement.addBatch();
                statement.setNull(1, Types.BIGINT);
                statement.setString(2, "bad");
                statement.addBatch();
                return Arrays.toString(statement.executeBatch());
            }
        });
    }

    public static void main(String[] arguments) {
        try (Connection connection = DriverManager.getConnection(arguments[0])) {
            switch (arguments[1]) {
                case "statements":
                    statements(connection);
                    break;
                case "values":
                    values(connection);
                    break;
                case "zones":
                    zones(connection);
                    break;
                case "prepared":
                    prepared(connection);
                    break;
                case "refused":
                    refused(connection);
                    break;
                case "batches":
                    batches(connection);
                    break;
                default:
                    throw new IllegalArgumentException(arguments[1]);
            }
        } catch (Throwable error) {
            failed = true;
            System.out.println("FAIL\tconnection\t" + oneLine(error));
        }
        System.exit(failed ? 1 : 0);
    }
}
