// What a JDBC program does with a server, with any Arrow Flight SQL JDBC driver on the class path.
//
//   java --add-opens=java.base/java.nio=ALL-UNNAMED -cp DRIVER.jar clients/java/Smoke.java \
//     'jdbc:arrow-flight-sql://127.0.0.1:31337/?useEncryption=false' CHECK
//
// Prints one `name<TAB>value` line for each thing found, and `FAIL<TAB>name<TAB>message` for each that threw.
// Ends with System.exit, because the driver keeps threads alive after a failed read.

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.util.Arrays;
import java.util.Comparator;

public class Smoke {
    private static boolean failed = false;

    interface Check {
        Object run() throws Exception;
    }

    private static void check(String name, Check check) {
        try {
            System.out.println(name + "\t" + check.run());
        } catch (Throwable error) {
            failed = true;
            Throwable cause = error instanceof InvocationTargetException ? error.getCause() : error;
            System.out.println("FAIL\t" + name + "\t" + cause);
        }
    }

    /** All rows, columns joined with `|`, rows with `;`. */
    private static String rows(ResultSet result) throws SQLException {
        try (result) {
            ResultSetMetaData meta = result.getMetaData();
            StringBuilder out = new StringBuilder();
            while (result.next()) {
                for (int i = 1; i <= meta.getColumnCount(); i++) {
                    out.append(i > 1 ? "|" : "").append(text(result.getObject(i)));
                }
                out.append(";");
            }
            return out.toString();
        }
    }

    /** Milliseconds since 1970 of the first column: the newest driver has no getObject for instants. */
    private static String instants(ResultSet result) throws SQLException {
        try (result) {
            StringBuilder out = new StringBuilder();
            while (result.next()) {
                Timestamp value = result.getTimestamp(1);
                out.append(value == null ? "null" : value.getTime()).append(";");
            }
            return out.toString();
        }
    }

    private static String text(Object value) {
        if (value instanceof byte[]) {
            StringBuilder hex = new StringBuilder("hex:");
            for (byte b : (byte[]) value) {
                hex.append(String.format("%02x", b));
            }
            return hex.toString();
        }
        return String.valueOf(value);
    }

    private static void queries(Connection connection) {
        check("driver", () -> connection.getMetaData().getDriverVersion());
        check("probe", () -> {
            try (Statement statement = connection.createStatement()) {
                return rows(statement.executeQuery("SELECT 1"));
            }
        });
        check("words", () -> {
            try (Statement statement = connection.createStatement()) {
                return rows(statement.executeQuery("SELECT id, word FROM own.default.words ORDER BY id"));
            }
        });
        check("execute", () -> {
            try (Statement statement = connection.createStatement()) {
                boolean isQuery = statement.execute("SELECT count(*) FROM own.default.words");
                return isQuery + " " + rows(statement.getResultSet());
            }
        });
        check("empty", () -> {
            try (Statement statement = connection.createStatement()) {
                ResultSet result = statement.executeQuery("SELECT * FROM own.default.empty");
                return result.getMetaData().getColumnCount() + " " + rows(result);
            }
        });
        check("numbers", () -> {
            try (Statement statement = connection.createStatement()) {
                ResultSet result = statement.executeQuery("SELECT n FROM own.other.numbers ORDER BY n");
                long at = 0;
                while (result.next()) {
                    if (result.getLong(1) != at++) {
                        throw new IllegalStateException("row " + at);
                    }
                }
                return at;
            }
        });
        String columns = "id, b, i, f, d, s, bin, fix, dec, day, t, ts, tz, list, st, m";
        for (String column : columns.split(", ")) {
            check("type " + column, () -> {
                try (Statement statement = connection.createStatement()) {
                    if (column.equals("tz")) {
                        return instants(statement.executeQuery("SELECT tz FROM own.default.types ORDER BY id"));
                    }
                    return rows(statement.executeQuery("SELECT " + column + " FROM own.default.types ORDER BY id"));
                }
            });
        }
        check("bound long", () -> {
            try (PreparedStatement statement =
                    connection.prepareStatement("SELECT word FROM own.default.words WHERE id = ?")) {
                statement.setLong(1, 2);
                String first = rows(statement.executeQuery());
                statement.setLong(1, 4);
                return first + rows(statement.executeQuery());
            }
        });
        check("bound string", () -> {
            try (PreparedStatement statement =
                    connection.prepareStatement("SELECT id FROM own.default.words WHERE word = ?")) {
                statement.setString(1, "four");
                return rows(statement.executeQuery());
            }
        });
        check("several bound", () -> {
            try (PreparedStatement statement =
                    connection.prepareStatement("SELECT n FROM own.other.numbers WHERE n > ? AND n < ? ORDER BY n")) {
                statement.setLong(1, 10);
                statement.setLong(2, 13);
                return statement.getParameterMetaData().getParameterCount() + " " + rows(statement.executeQuery());
            }
        });
        check("write", () -> {
            try (Statement statement = connection.createStatement()) {
                statement.executeUpdate("DELETE FROM own.default.words");
                return "accepted";
            } catch (SQLException refused) {
                return "refused: " + refused.getMessage().replace('\n', ' ');
            }
        });
        check("error", () -> {
            try (Statement statement = connection.createStatement()) {
                statement.executeQuery("SELECT nope FROM own.default.words");
                return "accepted";
            } catch (SQLException refused) {
                return "refused: " + refused.getMessage().replace('\n', ' ');
            }
        });
        check("after errors", () -> {
            try (Statement statement = connection.createStatement()) {
                return rows(statement.executeQuery("SELECT count(*) FROM own.default.words"));
            }
        });
    }

    private static void metadata(Connection connection) throws SQLException {
        DatabaseMetaData meta = connection.getMetaData();
        check("catalogs", () -> rows(meta.getCatalogs()));
        check("schemas", () -> rows(meta.getSchemas()));
        check("schemas of own", () -> rows(meta.getSchemas("own", "%")));
        check("table types", () -> rows(meta.getTableTypes()));
        check("tables", () -> rows(meta.getTables("own", null, "%", null)));
        check("tables of a type", () -> rows(meta.getTables("own", "default", "w%", new String[] {"TABLE"})));
        check("columns", () -> {
            StringBuilder out = new StringBuilder();
            try (ResultSet result = meta.getColumns("own", "default", "types", "%")) {
                while (result.next()) {
                    out.append(result.getString("COLUMN_NAME")).append(":").append(result.getInt("DATA_TYPE"));
                    out.append(":").append(result.getString("IS_NULLABLE")).append(";");
                }
            }
            return out;
        });
        check("type info", () -> rows(meta.getTypeInfo()).length() >= 0);
        check("primary keys", () -> rows(meta.getPrimaryKeys("own", "default", "words")));
        check("imported keys", () -> rows(meta.getImportedKeys("own", "default", "words")));
        check("exported keys", () -> rows(meta.getExportedKeys("own", "default", "words")));
        check("cross reference",
                () -> rows(meta.getCrossReference("own", "default", "words", "own", "default", "types")));
    }

    /** Every method of DatabaseMetaData that takes nothing, or only whole numbers, answers. */
    private static void getters(Connection connection) throws SQLException {
        DatabaseMetaData meta = connection.getMetaData();
        Method[] methods = DatabaseMetaData.class.getMethods();
        Arrays.sort(methods, Comparator.comparing(Method::toString));
        for (Method method : methods) {
            Class<?>[] kinds = method.getParameterTypes();
            if (!Arrays.stream(kinds).allMatch(kind -> kind == int.class)) {
                continue;
            }
            Object[] arguments = new Object[kinds.length];
            Arrays.fill(arguments, kinds.length == 2 && method.getName().startsWith("supportsConvert") ? 4 : 1003);
            if (method.getName().equals("supportsTransactionIsolationLevel")) {
                arguments[0] = Connection.TRANSACTION_SERIALIZABLE;
            } else if (method.getName().equals("supportsResultSetHoldability")) {
                arguments[0] = ResultSet.HOLD_CURSORS_OVER_COMMIT;
            } else if (method.getName().equals("supportsResultSetConcurrency")) {
                arguments[1] = ResultSet.CONCUR_READ_ONLY;
            }
            check("get " + method.getName(), () -> {
                Object value = method.invoke(meta, arguments);
                return value instanceof ResultSet ? "rows " + rows((ResultSet) value).length() : value;
            });
        }
    }

    public static void main(String[] arguments) {
        try (Connection connection = DriverManager.getConnection(arguments[0])) {
            switch (arguments[1]) {
                case "queries":
                    queries(connection);
                    break;
                case "metadata":
                    metadata(connection);
                    break;
                case "getters":
                    getters(connection);
                    break;
                default:
                    throw new IllegalArgumentException(arguments[1]);
            }
        } catch (Throwable error) {
            failed = true;
            System.out.println("FAIL\tconnection\t" + error);
        }
        System.exit(failed ? 1 : 0);
    }
}
