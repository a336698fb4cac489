"""Random DELETE statements, each with the rows that it deletes worked out twice, without the server.

A condition is SQL, and a function that makes a mask of a table's rows by Arrow's three-valued logic; what a subquery
gives is looked up in Python. The same SQL goes to DuckDB, whose tables in memory are the second model. Both take NaN
as equal to itself and above all numbers, as the server does.
"""

import dataclasses
import datetime
import math
from collections.abc import Callable

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

ROWS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("k", pa.int64()),
        pa.field("x", pa.float64()),
        pa.field("s", pa.string()),
        pa.field("d", pa.date32()),
        pa.field("ts", pa.timestamp("us")),
        pa.field("b", pa.bool_()),
        pa.field("n", pa.decimal128(9, 2)),
        pa.field("late", pa.int32()),
    ]
)
KEYS = pa.schema([pa.field("g", pa.int64()), pa.field("id", pa.int64()), pa.field("k", pa.int64()), pa.field("v", pa.float64()), pa.field("s", pa.string())])
GROUPS = 12
NAN = float("nan")
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "été", "日本", "", "a_b", "100%"]
FIRST_DAY = datetime.date(2023, 12, 30)
DAYS = 4
FIRST_DATE = datetime.date(1969, 12, 1)


def random_rows(chance, first, count):
    """Rows with ids from `first` on; each column but `id` has nulls, `x` NaN and infinities."""

    def some(values):
        nulls = chance.choices([False, True], [19, 1], k=count)
        return [None if null else value for null, value in zip(nulls, values)]

    def numbers(low, high):
        return chance.choices(range(low, high), k=count)

    midnight = datetime.datetime.combine(FIRST_DAY, datetime.time())
    seconds, parts = numbers(0, DAYS * 86_400), chance.choices([0, 1, 999_999], k=count)
    odd = chance.choices([None, NAN, math.inf, -math.inf], [95, 3, 1, 1], k=count)
    columns = {
        "id": range(first, first + count),
        "k": some(numbers(0, 500)),
        "x": some(n / 8 if value is None else value for n, value in zip(numbers(-800, 800), odd)),
        "s": some(f"{word}{n if n < 100 else ''}" for word, n in zip(chance.choices(WORDS, k=count), numbers(0, 110))),
        "d": some(FIRST_DATE + datetime.timedelta(days=n) for n in numbers(0, 400)),
        "ts": some(midnight + datetime.timedelta(seconds=a, microseconds=b) for a, b in zip(seconds, parts)),
        "b": some(chance.choices([True, False], k=count)),
        "n": hundredths(some(numbers(-50_000, 50_000))),
        "late": some(numbers(-20, 20)),
    }
    return pa.table([pa.array(columns[field.name], field.type) for field in ROWS], schema=ROWS)


def hundredths(numbers):
    """Whole numbers as decimals with two digits behind the point."""
    texts = [None if n is None else f"{'-' if n < 0 else ''}{abs(n) // 100}.{abs(n) % 100:02d}" for n in numbers]
    return pa.array(texts, pa.string()).cast(pa.decimal128(9, 2))


def random_keys(chance, ids):
    """A table for subqueries: groups of rows, some with a null id or key, some with none."""
    rows = []
    for g in range(GROUPS):
        for n in range(chance.randrange(3, 12)):
            has_null = g % 4 == 3 and n == 0
            rows.append(
                {
                    "g": g,
                    "id": None if has_null else chance.randrange(ids),
                    "k": None if has_null or chance.random() < 0.1 else chance.randrange(500),
                    "v": NAN if g % 5 == 4 and n == 1 else chance.randrange(-800, 800) / 8,
                    "s": chance.choice([None, *WORDS]),
                }
            )
    return pa.Table.from_pylist(rows, schema=KEYS)


@dataclasses.dataclass
class Condition:
    """SQL with `{t}` for what columns are qualified by, and the rows of a table for which it is true, false, unknown."""

    sql: str
    mask: Callable[[pa.Table], pa.ChunkedArray]
    # Tables besides, for USING.
    using: str = ""
    # Values of a prepared statement, where the SQL has marks.
    parameters: list | None = None


def constant(value):
    """The same truth for every row."""
    return lambda table: pa.array([value] * table.num_rows, pa.bool_())


def compare(column, op, value):
    """A column of numbers, text or times beside a value, by the total order of floats."""
    if value is None:
        return pa.nulls(len(column), pa.bool_())
    if not pa.types.is_floating(column.type):
        return getattr(pc, op)(column, value)
    nan = pc.is_nan(column)
    if isinstance(value, float) and math.isnan(value):
        return {
            "equal": nan,
            "not_equal": pc.invert(nan),
            "less": pc.invert(nan),
            "less_equal": pc.or_(nan, True),
            "greater": pc.and_(nan, False),
            "greater_equal": nan,
        }[op]
    if op in ("greater", "greater_equal", "not_equal"):
        return pc.or_(getattr(pc, op)(column, value), nan)
    return getattr(pc, op)(column, value)


OPS = {"=": "equal", "<>": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def literal(value):
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case float():
            return f"CAST('{value!r}' AS DOUBLE)" if math.isnan(value) or math.isinf(value) else repr(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime.datetime():
            return f"TIMESTAMP '{value.isoformat(' ')}'"
        case datetime.date():
            return f"DATE '{value.isoformat()}'"
    return str(value)


class Statements:
    """Random statements about a table of `ROWS`, from one seed. `shape` is how the table is partitioned."""

    def __init__(self, chance, keys, ids, shape=""):
        self.chance = chance
        self.shape = shape
        self.keys = keys.to_pylist()
        self.ids = ids

    # values

    def value(self, name):
        chance = self.chance
        match name:
            case "id":
                return chance.randrange(self.ids)
            case "k":
                return chance.randrange(500)
            case "x":
                return NAN if chance.random() < 0.1 else chance.choice([math.inf, -math.inf]) if chance.random() < 0.05 else chance.randrange(-800, 800) / 8
            case "s":
                return f"{chance.choice(WORDS)}{chance.randrange(100)}"
            case "d":
                return FIRST_DATE + datetime.timedelta(days=chance.randrange(400))
            case "ts":
                return datetime.datetime.combine(FIRST_DAY, datetime.time()) + datetime.timedelta(seconds=chance.randrange(DAYS * 86_400))
            case "b":
                return chance.random() < 0.5
            case "late":
                return chance.randrange(-20, 20)
        raise KeyError(name)

    # conditions of a column

    def comparison(self):
        name = self.chance.choice(["id", "k", "k", "x", "x", "s", "d", "ts", "late"])
        op, value = self.chance.choice(list(OPS)), self.value(name)
        if self.chance.random() < 0.04:
            value = None
        sql = f"{{t}}{name} {op} {literal(value)}"
        if self.chance.random() < 0.2:
            sql = f"{literal(value)} {MIRRORED[op]} {{t}}{name}"
        return Condition(sql, lambda table: compare(table[name], OPS[op], value))

    def decimal(self):
        op, cents = self.chance.choice(list(OPS)), self.chance.randrange(-50_000, 50_000)
        [value] = hundredths([cents]).to_pylist()
        return Condition(f"{{t}}n {op} {value}", lambda table: getattr(pc, OPS[op])(table["n"], pa.scalar(value, pa.decimal128(9, 2))))

    def truth(self):
        value = self.chance.choice(["", "NOT ", "is"])
        if value == "is":
            of = self.chance.choice([True, False])
            return Condition(f"{{t}}b IS {'' if of else 'NOT '}TRUE", lambda table: pc.equal(pc.fill_null(table["b"], False), of))
        return Condition(f"{value}{{t}}b", lambda table: table["b"] if not value else pc.invert(table["b"]))

    def is_null(self):
        name = self.chance.choice(["k", "x", "s", "d", "ts", "b", "n", "late"])
        negated = self.chance.random() < 0.5
        sql = f"{{t}}{name} IS {'NOT ' if negated else ''}NULL"
        return Condition(sql, lambda table: pc.is_valid(table[name]) if negated else pc.is_null(table[name]))

    def is_nan(self):
        return Condition("isnan({t}x)", lambda table: pc.is_nan(table["x"]))

    def in_list(self):
        name = self.chance.choice(["id", "k", "k", "x", "s", "d", "late"])
        values = [self.value(name) for _ in range(self.chance.randrange(1, 8))]
        if self.chance.random() < 0.15:
            values.append(None)
        negated = self.chance.random() < 0.3
        sql = f"{{t}}{name} {'NOT ' if negated else ''}IN ({', '.join(map(literal, values))})"

        def mask(table):
            found = constant(False)(table)
            for value in values:
                found = pc.or_kleene(found, compare(table[name], "equal", value))
            return pc.invert(found) if negated else found

        return Condition(sql, mask)

    def between(self):
        name = self.chance.choice(["id", "k", "x", "s", "d", "ts", "late"])
        low, high = self.value(name), self.value(name)
        negated = self.chance.random() < 0.2
        sql = f"{{t}}{name} {'NOT ' if negated else ''}BETWEEN {literal(low)} AND {literal(high)}"

        def mask(table):
            found = pc.and_kleene(compare(table[name], "greater_equal", low), compare(table[name], "less_equal", high))
            return pc.invert(found) if negated else found

        return Condition(sql, mask)

    def like(self):
        word = self.chance.choice([word for word in WORDS if word and "%" not in word and "_" not in word])
        pattern = self.chance.choice([f"{word}%", f"%{self.chance.randrange(100)}", f"%{word[1:]}%", f"{word}_", f"_{word[1:]}%", f"{word}1", "%"])
        negated = self.chance.random() < 0.3
        sql = f"{{t}}s {'NOT ' if negated else ''}LIKE {literal(pattern)}"
        return Condition(sql, lambda table: pc.invert(pc.match_like(table["s"], pattern)) if negated else pc.match_like(table["s"], pattern))

    def columns(self):
        """Two columns beside each other, and what an expression makes of one."""
        return self.chance.choice(
            [
                Condition("{t}k + 1 = {t}late * 20", lambda table: pc.equal(pc.add(table["k"], 1), pc.multiply(table["late"].cast(pa.int64()), 20))),
                Condition("{t}late < {t}k - 480", lambda table: pc.less(table["late"].cast(pa.int64()), pc.subtract(table["k"], 480))),
                Condition("coalesce({t}k, -1) = -1", lambda table: pc.equal(pc.fill_null(table["k"], -1), -1)),
                Condition("CASE WHEN {t}b THEN {t}k ELSE 0 END = 7", lambda table: pc.equal(pc.if_else(pc.fill_null(table["b"], False), table["k"], 0), 7)),
                Condition("length({t}s) = 0", lambda table: pc.equal(pc.utf8_length(table["s"]), 0)),
            ]
        )

    def folded(self):
        sql, value = self.chance.choice([("1 = 0", False), ("false", False), ("NULL", None), ("1 < 2", True), ("NULL = 1", None), ("true", True)])
        return Condition(f"({sql})", constant(value))

    # conditions with subqueries

    def group(self):
        g = self.chance.randrange(GROUPS)
        return g, [row for row in self.keys if row["g"] == g]

    def in_subquery(self):
        g, rows = self.group()
        name = self.chance.choice(["id", "k", "s"])
        negated = self.chance.random() < 0.3
        values = [row[name] for row in rows]
        sql = f"{{t}}{name} {'NOT ' if negated else ''}IN (SELECT u.{name} FROM s.keys AS u WHERE u.g = {g})"

        def mask(table):
            known = pa.array([value for value in values if value is not None], table[name].type)
            found = pc.is_in(table[name], known)
            unknown = pc.is_null(table[name]) if None not in values else pc.or_(pc.is_null(table[name]), pc.invert(found))
            found = pc.if_else(unknown, None, found)
            return pc.invert(found) if negated else found

        return Condition(sql, mask)

    def exists(self):
        g, rows = self.group()
        negated = self.chance.random() < 0.3
        limit = self.chance.randrange(-800, 800) / 8
        sql = f"{'NOT ' if negated else ''}EXISTS (SELECT 1 FROM s.keys AS u WHERE u.g = {g} AND u.k = {{t}}k AND u.v > {limit})"
        keys = pa.array([row["k"] for row in rows if row["k"] is not None and (row["v"] > limit or math.isnan(row["v"]))], pa.int64())

        def mask(table):
            found = pc.and_(pc.is_in(table["k"], keys), pc.is_valid(table["k"]))
            return pc.invert(found) if negated else found

        return Condition(sql, mask)

    def scalar(self):
        """A column beside one value of a subquery, which asks for the row's own key or for none."""
        g, rows = self.group()
        if self.chance.random() < 0.5:
            ids = [row["id"] for row in rows if row["id"] is not None]
            op = self.chance.choice(["=", "<", ">="])
            sql = f"{{t}}id {op} (SELECT min(u.id) FROM s.keys AS u WHERE u.g = {g})"
            return Condition(sql, lambda table: compare(table["id"], OPS[op], min(ids)))
        most = {}
        for row in rows:
            if row["k"] is not None and row["id"] is not None:
                most[row["k"]] = max(most.get(row["k"], -1), row["id"])
        sql = f"{{t}}id > (SELECT max(u.id) FROM s.keys AS u WHERE u.g = {g} AND u.k = {{t}}k)"

        def mask(table):
            found = pa.nulls(table.num_rows, pa.bool_())
            for key, value in most.items():
                of_key = pc.fill_null(pc.equal(table["k"], key), False)
                found = pc.if_else(of_key, pc.greater(table["id"], value), found)
            return found

        return Condition(sql, mask)

    def of_itself(self):
        """Rows of the table itself, in a subquery."""
        late, shift = self.chance.randrange(-20, 20), self.chance.choice([0, 1, -1])
        sql = f"{{t}}id IN (SELECT o.id + {shift} FROM {{name}} AS o WHERE o.late = {late} AND o.b)".replace("+ -", "- ")

        def mask(table):
            chosen = table.filter(pc.and_kleene(pc.equal(table["late"], late), table["b"]))
            return pc.is_in(table["id"], pc.add(chosen["id"], shift).combine_chunks())

        return Condition(sql, mask)

    def using(self):
        """A join: a row that several rows match is deleted once."""
        g, rows = self.group()
        limit = self.chance.randrange(-20, 20)
        sql = f"{{t}}k = u.k AND u.g = {g} AND ({{t}}late > {limit} OR {{t}}s = u.s)"
        using = "s.keys AS u"

        def mask(table):
            late = pc.greater(table["late"], limit)
            found = constant(False)(table)
            for row in rows:
                if row["k"] is not None:
                    other = compare(table["s"], "equal", row["s"])
                    found = pc.or_kleene(found, pc.and_kleene(pc.equal(table["k"], row["k"]), pc.or_kleene(late, other)))
            return found

        return Condition(sql, mask, using=using)

    def prepared(self):
        """Values for marks, one set or several; `None` among them matches nothing."""
        sets = [[self.value("id"), self.value("k"), self.value("late")] for _ in range(self.chance.choice([1, 1, 3]))]
        if self.chance.random() < 0.3:
            sets[0][0] = None
        if self.chance.random() < 0.5:
            return Condition("{t}id = ? OR ({t}k = ? AND {t}late = ?)", lambda table: any_of(sets, table, one_or_both), parameters=sets)
        ranges = [[number, None if number is None else number + 300, late] for number, _, late in sets]
        return Condition("{t}id BETWEEN ? AND ? AND {t}late = ?", lambda table: any_of(ranges, table, within), parameters=ranges)

    # trees

    def leaf(self):
        kinds = [self.comparison] * 6 + [self.in_list] * 3 + [self.between] * 3 + [self.like] * 2 + [self.is_null] * 2
        kinds += [self.decimal, self.truth, self.is_nan, self.columns, self.folded, self.in_subquery, self.in_subquery, self.exists, self.scalar, self.of_itself]
        return self.chance.choice(kinds)()

    def tree(self, depth=0):
        shape = self.chance.random()
        if depth == 2 or shape < 0.45:
            return self.leaf()
        if shape < 0.6:
            inner = self.tree(depth + 1)
            return Condition(f"NOT ({inner.sql})", lambda table: pc.invert(inner.mask(table)))
        left, right = self.tree(depth + 1), self.tree(depth + 1)
        return both(left, right) if shape < 0.85 else either(left, right)

    def window(self):
        """A few hundred rows that lie together, of one partition where partitions are known."""
        low = self.chance.randrange(self.ids)
        high = low + self.chance.randrange(20, 400) * (1 if self.shape != "bucket" else 50)
        found = Condition(f"{{t}}id BETWEEN {low} AND {high}", lambda table: pc.and_(pc.greater_equal(table["id"], low), pc.less_equal(table["id"], high)))
        if self.shape == "bucket":
            found = both(found, self.narrow())
        if self.shape == "day":
            start = datetime.datetime.combine(FIRST_DAY + datetime.timedelta(days=self.chance.randrange(DAYS)), datetime.time())
            end = start + datetime.timedelta(days=1)
            of_day = f"{{t}}ts >= {literal(start)} AND {{t}}ts < {literal(end)}"
            found = both(found, Condition(of_day, lambda table: pc.and_kleene(compare(table["ts"], "greater_equal", start), compare(table["ts"], "less", end))))
        return found

    def narrow(self):
        """About one row in hundreds, anywhere."""
        k = self.chance.randrange(500)
        return Condition(f"{{t}}k = {k}", lambda table: pc.equal(table["k"], k))

    def next(self, rows):
        """A condition that deletes some of these rows, but not most of them."""
        shape = self.chance.random()
        if shape < 0.08:
            return self.prepared()
        found = self.using() if shape < 0.16 else self.tree()
        if shape > 0.25:
            # Most read a part of a file only, which leaves time for more of them.
            found = both(found, self.window())
        most = max(300, rows.num_rows // (20 if self.chance.random() < 0.1 else 150))
        while deleted(found, rows) > most:
            found = both(found, self.window() if self.chance.random() < 0.7 else self.narrow())
        return found


def one_or_both(table, number, k, late):
    pair = pc.and_kleene(pc.equal(table["k"], k), pc.equal(table["late"], late))
    return pc.or_kleene(compare(table["id"], "equal", number), pair)


def within(table, low, high, late):
    between = pc.and_kleene(compare(table["id"], "greater_equal", low), compare(table["id"], "less_equal", high))
    return pc.and_kleene(between, pc.equal(table["late"], late))


def any_of(sets, table, of_set):
    """Rows for which it is true with one of the sets of values."""
    found = constant(False)(table)
    for values in sets:
        found = pc.or_kleene(found, of_set(table, *values))
    return found


def both(left, right):
    return Condition(f"({left.sql}) AND ({right.sql})", lambda table: pc.and_kleene(left.mask(table), right.mask(table)), left.using or right.using)


def either(left, right):
    return Condition(f"({left.sql}) OR ({right.sql})", lambda table: pc.or_kleene(left.mask(table), right.mask(table)), left.using or right.using)


def deleted(condition, rows):
    """How many of the rows the condition is true for."""
    return pc.sum(pc.fill_null(condition.mask(rows), False)).as_py() or 0


class Models:
    """The rows that must be left: an Arrow table, and a table of DuckDB."""

    def __init__(self, name, keys):
        self.name = name
        self.rows = ROWS.empty_table()
        self.duck = duckdb.connect()
        self.duck.execute("SET TimeZone = 'UTC'; CREATE SCHEMA s")
        self.duck.register("given", keys)
        self.duck.execute("CREATE TABLE s.keys AS SELECT * FROM given")
        self.duck.register("empty", self.rows)
        self.duck.execute(f"CREATE TABLE s.{name} AS SELECT * FROM empty")

    def insert(self, rows):
        self.rows = pa.concat_tables([self.rows, rows])
        self.duck.register("more", rows)
        self.duck.execute(f"INSERT INTO s.{self.name} SELECT * FROM more")

    def delete(self, condition, sql):
        """Deletes in both; the number of rows of each."""
        mask = pc.fill_null(condition.mask(self.rows), False)
        self.rows = self.rows.filter(pc.invert(mask)).combine_chunks()
        counts = [self.duck.execute(sql, parameters).fetchone()[0] for parameters in condition.parameters or [None]]
        return pc.sum(mask).as_py() or 0, sum(counts)

    def delete_ids(self, ids):
        """Deletes rows by their ids; the rows."""
        gone = pc.is_in(self.rows["id"], pa.array(ids, pa.int64()))
        taken = self.rows.filter(gone)
        self.rows = self.rows.filter(pc.invert(gone))
        self.duck.register("gone", taken.select(["id"]))
        self.duck.execute(f"DELETE FROM s.{self.name} WHERE id IN (SELECT id FROM gone)")
        return taken

    def close(self):
        self.duck.close()


def statement(chance, name, condition):
    """The condition as DELETE, with or without an alias."""
    alias = chance.choice(["", "", " a", " AS a", f" AS {name}"])
    prefix = "a." if alias in (" a", " AS a") else chance.choice(["", f"{name}."]) if not alias else f"{name}."
    if not prefix and (condition.using or "(SELECT" in condition.sql):
        # Columns of the subquery have the same names.
        prefix = f"{name}."
    using = f" USING {condition.using}" if condition.using else ""
    where = condition.sql.replace("{t}", prefix).replace("{name}", f"s.{name}")
    return f"DELETE FROM s.{name}{alias}{using} WHERE {where}"
