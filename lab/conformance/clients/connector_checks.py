"""mysql-connector-python, its pure Python side: text and binary protocol, long data, cursors, query attributes."""

import io

import mysql.connector
from mysql.connector.constants import ClientFlag

import dbapi  # noqa: F401 (importing it registers its checks)
import driver
from common import check, main, plain, rows


class Driver(driver.Driver):
    """mysql-connector-python for the shared checks."""

    has_prepared = True
    errors = (mysql.connector.Error, OSError)

    def connect(self, config, options):
        flags = [ClientFlag.MULTI_STATEMENTS, ClientFlag.FOUND_ROWS if options.get("found_rows") else -ClientFlag.FOUND_ROWS]
        arguments = {
            "host": config["host"],
            "port": config["port"],
            "user": options["user"],
            "password": options["password"],
            "database": options["database"],
            "charset": options.get("charset", "utf8mb4"),
            "autocommit": options.get("autocommit", True),
            "init_command": options.get("init_command"),
            "allow_local_infile": bool(options.get("local_infile")),
            "client_flags": flags,
            "compress": bool(options.get("compress")),
            "conn_attrs": options.get("attributes"),
            "ssl_disabled": not options.get("tls"),
            "tls_versions": options.get("tls_versions"),
            "connection_timeout": 15,
            "read_timeout": 40,
            "write_timeout": 40,
            "use_pure": True,
            "raw": not options.get("typed"),
        }
        if options.get("collation"):
            arguments["collation"] = options["collation"]
        elif config["server"] == "mariadb" and "charset" not in options:
            arguments["collation"] = "utf8mb4_general_ci"  # MariaDB does not know the driver's default
        arguments = {name: value for name, value in arguments.items() if value is not None}
        connection = mysql.connector.connect(**arguments)
        connection.conformance_statements = {}
        return connection

    def abandon(self, connection):
        """Closes the socket in the middle of a result."""
        connection._socket.close_connection()

    def error(self, error):
        return plain([getattr(error, "errno", None), getattr(error, "sqlstate", None), getattr(error, "msg", str(error))])

    def query(self, connection, sql):
        outcome = []
        try:
            connection.handle_unread_result()
            result = connection.cmd_query(sql, raw=True)
            outcome.append(self.describe(connection, result))
            while connection.have_next_result:
                result = connection._handle_result(connection._socket.recv())
                outcome.append(self.describe(connection, result))
        except self.errors as error:
            outcome.append({"error": self.error(error)})
        return outcome

    def describe(self, connection, result, binary=False):
        if "columns" in result:
            found, end = connection.get_rows(raw=True, binary=binary, columns=result["columns"] if binary else None)
            return {"columns": plain(result["columns"]), "rows": rows(found), "end": plain(end)}
        return plain(result)

    def prepared(self, connection, sql, params):
        outcome = []
        try:
            statement = connection.conformance_statements.get(sql)
            if statement is None:
                statement = connection.cmd_stmt_prepare(sql.encode())
                connection.conformance_statements[sql] = statement
                described = {name: value for name, value in statement.items() if name != "statement_id"}
                outcome.append({"prepared": plain(described)})
            result = connection.cmd_stmt_execute(statement["statement_id"], data=params, parameters=statement["parameters"])
            outcome.append(self.describe_binary(connection, result))
            while connection.have_next_result:
                result = connection._handle_binary_result(connection._socket.recv())
                outcome.append(self.describe_binary(connection, result))
        except self.errors as error:
            outcome.append({"error": self.error(error)})
        return outcome

    def describe_binary(self, connection, result):
        if isinstance(result, tuple):
            connection._handle_server_status(result[2].get("status_flag", 0))
            connection.unread_result = True
            return self.describe(connection, {"columns": result[1]}, binary=True)
        return plain(result)

    def scalar(self, connection, sql):
        connection.cmd_query(sql, raw=True)
        return connection.get_rows(raw=True)[0][0][0]

    def cursor(self, connection, kind="tuple"):
        if kind == "tuple":
            return connection.cursor(buffered=True)
        return connection.cursor(dictionary=kind in ("dict", "unbuffered_dict"), buffered=kind == "dict")

    def all_sets(self, cursor):
        stored = [rows(result.fetchall()) for result in getattr(cursor, "stored_results", lambda: ())()]
        sets = [[cursor.rowcount, rows(cursor.fetchall()) if cursor.with_rows else []]]
        while cursor.nextset():
            sets.append([cursor.rowcount, rows(cursor.fetchall()) if cursor.with_rows else []])
        return [stored, sets]

    def thread_id(self, connection):
        return connection.connection_id

    def server_version(self, connection):
        return connection.server_info

    def ping(self, connection):
        connection.cmd_ping()

    def select_db(self, connection, name):
        connection.cmd_init_db(name)

    def autocommit(self, connection, on):
        connection.autocommit = on

    def get_autocommit(self, connection):
        return connection.in_transaction, plain(self.scalar(connection, "SELECT @@autocommit"))


def prepare(connection, sql):
    return connection.cmd_stmt_prepare(sql.encode())


def numberless(answer, statement):
    """`answer` without the statement's id: MariaDB's threads go on counting where their last session ended."""
    answer["error"][2] = answer["error"][2].replace(f"({statement['statement_id']})", "(ID)")
    return answer


def fetched(connection, result, count=None):
    """The rows of a binary result that has been announced."""
    connection.unread_result = True
    found, end = connection.get_rows(count=count, binary=True, columns=result[1])
    return [rows(found), plain(end)]


# --- commands ---


@check("commands.change_user")
def change_user(context):
    connection = context.connect()
    context.run(connection, "SET @a = 1, time_zone = '+03:00'")
    context.run(connection, "CREATE TEMPORARY TABLE change_user_t (a INT)")
    context.run(connection, "BEGIN")
    passwords, schema = context.config["passwords"], context.config["schema"]
    answers = [plain(connection.cmd_change_user("conf_other", passwords["conf_other"], schema))]
    answers.append(context.run(connection, "SELECT CURRENT_USER(), DATABASE(), @a, @@time_zone, @@character_set_client"))
    answers.append(context.run(connection, "SELECT * FROM change_user_t"))
    context.move()
    answers.append(context.run(connection, "SELECT CURRENT_USER(), DATABASE()"))
    answers.append(plain(connection.cmd_change_user("conf", passwords["conf"], "")))
    answers.append(context.run(connection, "SELECT CURRENT_USER(), DATABASE()"))
    return answers


@check("commands.change_user_refused")
def change_user_refused(context):
    results = []
    # No unknown user: MySQL asks each by a plugin drawn at random.
    for user, password, schema in (("conf_other", "wrong", ""), ("conf_other", "other-secret", "no_such_schema")):
        connection = context.connect()
        error = context.error_of(connection.cmd_change_user, user, password, schema)
        # Nobody is refused by any plugin.
        results.append("error" in error if user == "nobody_like_this" else error)
        results.append("error" in context.run(connection, "SELECT 1")[-1])
    return results


@check("commands.reset_connection_by_the_driver")
def reset_connection(context):
    connection = context.connect()
    context.run(connection, "SET @a = 1, time_zone = '+03:00', sql_mode = ''")
    context.run(connection, "CREATE TEMPORARY TABLE reset_t (a INT)")
    statement = prepare(connection, "SELECT 1")
    answers = [connection.cmd_reset_connection()]
    answers.append(context.run(connection, "SELECT @a, @@time_zone, @@sql_mode = @@global.sql_mode, DATABASE()"))
    answers.append(context.run(connection, "SELECT * FROM reset_t"))
    answers.append(numberless(context.error_of(connection.cmd_stmt_execute, statement["statement_id"]), statement))
    return answers


@check("commands.statistics")
def statistics(context):
    connection = context.connect()
    return sorted(connection.cmd_statistics())


@check("commands.debug")
def debug(context):
    connection = context.connect()
    return [context.error_of(connection.cmd_debug), context.run(connection, "SELECT 1")]


@check("commands.process_kill")
def process_kill(context):
    connection, killer = context.connect(), context.connect()
    return [context.error_of(killer.cmd_process_kill, 3_999_999_999),
            context.error_of(killer.cmd_process_kill, connection.connection_id),
            "error" in context.run(connection, "SELECT 1")[-1]]


# --- prepared statements ---


@check("prepared.long_data")
def long_data(context):
    connection = context.connect()
    context.run(connection, "CREATE TABLE long_data (id INT PRIMARY KEY, a LONGBLOB, b LONGTEXT)")
    statement = prepare(connection, "INSERT INTO long_data VALUES (?, ?, ?)")
    answers = []
    for number, size in enumerate((10, 300_000, 17_825_792)):
        data = (number, io.BytesIO(b"\x01\xff" * (size // 2)), io.BytesIO("é".encode() * 1000) if number else "text")
        answers.append(plain(connection.cmd_stmt_execute(statement["statement_id"], data, statement["parameters"])))
    answers.append(context.run(connection, "SELECT id, LENGTH(a), MD5(a), b FROM long_data ORDER BY id"))
    return answers


@check("prepared.long_data_reset")
def long_data_reset(context):
    connection = context.connect()
    statement = prepare(connection, "SELECT LENGTH(?)")
    number = statement["statement_id"]
    connection.cmd_stmt_send_long_data(number, 0, io.BytesIO(b"x" * 1000))
    connection.cmd_stmt_reset(number)
    first = fetched(connection, connection.cmd_stmt_execute(number, ("abc",), statement["parameters"]))
    connection.cmd_stmt_send_long_data(number, 0, io.BytesIO(b"y" * 10))
    context.move()
    connection.cmd_stmt_send_long_data(number, 0, io.BytesIO(b"z" * 10))
    second = fetched(connection, connection.cmd_stmt_execute(number, (io.BytesIO(b""),), statement["parameters"]))
    return [first, second]


@check("prepared.server_cursor")
def server_cursor(context):
    connection = context.connect()
    context.run(connection, "CREATE TABLE server_cursor (id INT PRIMARY KEY, v VARCHAR(100))")
    context.run(connection, "INSERT INTO server_cursor VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e')")
    statement = prepare(connection, "SELECT * FROM server_cursor WHERE id > ? ORDER BY id")
    number = statement["statement_id"]
    result = connection.cmd_stmt_execute(number, (0,), statement["parameters"], flags=1)
    answers = [plain(result[2])]
    for count in (2, 2, 2):
        context.move()
        connection.cmd_stmt_fetch(number, count)
        answers.append(fetched(connection, result))
    answers.append(context.run(connection, "SELECT 'between'"))
    connection.cmd_stmt_reset(number)
    # With a cursor again: without one MySQL 9.7 answers definitions and an OK packet, which no client understands.
    result = connection.cmd_stmt_execute(number, (3,), statement["parameters"], flags=1)
    connection.cmd_stmt_fetch(number, 10)
    answers.append(fetched(connection, result))
    return answers


@check("prepared.close_and_many")
def close_and_many(context):
    connection = context.connect()
    answers = []
    for number in range(60):
        statement = prepare(connection, f"SELECT {number}, ?")
        result = connection.cmd_stmt_execute(statement["statement_id"], (number,), statement["parameters"])
        answers.append(fetched(connection, result))
        if number % 2:
            connection.cmd_stmt_close(statement["statement_id"])
    connection.cmd_stmt_close(statement["statement_id"])
    closed = context.error_of(connection.cmd_stmt_execute, statement["statement_id"], (1,), statement["parameters"])
    answers.append(numberless(closed, statement))
    answers.append(context.run(connection, "SELECT 1"))
    return answers


@check("prepared.ids_of_two_sessions")
def two_sessions(context):
    first, second = context.connect(), context.connect()
    one, other = prepare(first, "SELECT 'first', ?"), prepare(second, "SELECT 'second', ?")
    answers = []
    for turn in range(4):
        for connection, statement in ((first, one), (second, other)):
            result = connection.cmd_stmt_execute(statement["statement_id"], (turn,), statement["parameters"])
            answers.append(fetched(connection, result))
    first.cmd_stmt_close(one["statement_id"])
    result = second.cmd_stmt_execute(other["statement_id"], (9,), other["parameters"])
    answers.append(fetched(second, result))
    return answers


@check("prepared.in_two_schemas")
def two_schemas(context):
    connection = context.connect()
    statement = prepare(connection, "SELECT DATABASE(), COUNT(*) > 0 FROM information_schema.tables WHERE table_schema = DATABASE()")
    answers = [fetched(connection, connection.cmd_stmt_execute(statement["statement_id"]))]
    connection.cmd_init_db("information_schema")
    context.move()
    answers.append(fetched(connection, connection.cmd_stmt_execute(statement["statement_id"])))
    return answers


@check("prepared.cursor_class")
def prepared_cursor(context):
    connection = context.connect(typed=True)
    cursor = connection.cursor(prepared=True)
    cursor.execute("CREATE TABLE prepared_cursor (a INT, b VARCHAR(20), c DATETIME(3), d DECIMAL(10,2), e DOUBLE)")
    import datetime
    import decimal
    insert = "INSERT INTO prepared_cursor VALUES (%s, %s, %s, %s, %s)"
    for number in range(3):
        cursor.execute(insert, (number, "é" * number, datetime.datetime(2024, 1, 1, 0, 0, number, 5000), decimal.Decimal("1.5"), 0.25))
    cursor.executemany(insert, [(10, "many", None, None, None), (11, None, None, None, None)])
    cursor.execute("SELECT * FROM prepared_cursor WHERE a >= %s ORDER BY a", (1,))
    answers = [plain(cursor.fetchone()), plain(cursor.fetchmany(2)), plain(cursor.fetchall())]
    cursor.close()
    return [answers, plain(cursor.rowcount)]


# --- what goes with a connection or statement ---


@check("attributes.of_a_query", server="mysql")
def query_attributes(context):
    connection = context.connect()
    connection.query_attrs_append(("conf_one", "first"))
    connection.query_attrs_append(("conf_two", 2))
    answers = [context.run(connection, "SELECT mysql_query_attribute_string('conf_one'), mysql_query_attribute_string('conf_two'), mysql_query_attribute_string('conf_three')")]
    connection.query_attrs_clear()
    answers.append(context.run(connection, "SELECT mysql_query_attribute_string('conf_one')"))
    statement = prepare(connection, "SELECT ?, mysql_query_attribute_string('conf_one')")
    connection.query_attrs_append(("conf_one", "of the statement"))
    answers.append(fetched(connection, connection.cmd_stmt_execute(statement["statement_id"], (1,), statement["parameters"])))
    return answers


@check("attributes.of_the_connection")
def connection_attributes(context):
    connection = context.connect(attributes={"conf_key": "conf value", "ü": "é"})
    return context.run(connection, "SELECT 1")


@check("login.compression")
def compression(context):
    connection = context.connect(compress=True)
    return [
        context.run(connection, "SELECT 'short'"), context.run(connection, "SELECT REPEAT('x', 1000000)"),
        context.run(connection, f"SELECT LENGTH('{'y' * 3_000_000}')"), context.run(connection, "SELECT 1; SELECT 2"),
        context.run(connection, "SELECT * FROM nothing_here"), context.run(connection, "SHOW SESSION STATUS LIKE 'nothing'"),
    ]


@check("login.compression_over_16_megabytes")
def compression_large(context):
    connection = context.connect(compress=True)
    return [context.run(connection, "SELECT REPEAT('x', 17825792)"),
            context.run(connection, f"SELECT LENGTH('{'y' * 17_825_792}')"), context.run(connection, "SELECT 1")]


@check("login.compression_over_tls", server="mysql")
def compression_tls(context):
    connection = context.connect(compress=True, tls=True)
    return [context.run(connection, "SELECT 'short'"), context.run(connection, "SELECT REPEAT('x', 1000000)")]


@check("login.tls_versions", server="mysql")
def tls_versions(context):
    return [context.run(context.connect(tls=True, tls_versions=[version]), "SELECT 1") for version in ("TLSv1.2", "TLSv1.3")]


@check("charset.handshake_high_collation", server="mysql")
def handshake_high_collation(context):
    results = []
    for collation in ("utf8mb4_0900_ai_ci", "utf8mb4_ja_0900_as_cs", "utf8mb4_0900_bin", "utf8mb4_bin", "utf8mb4_general_ci"):
        connection = context.connect(collation=collation)
        results.append(context.run(connection, "SELECT @@collation_connection, @@character_set_client, 'x'"))
    return results


@check("transactions.of_the_driver", server="mysql")
def driver_transactions(context):
    connection = context.connect(autocommit=False)
    answers = []
    context.run(connection, "CREATE TABLE driver_transactions (a INT PRIMARY KEY) ENGINE=InnoDB")
    connection.start_transaction(isolation_level="READ COMMITTED", readonly=False)
    answers.append(connection.in_transaction)
    context.run(connection, "INSERT INTO driver_transactions VALUES (1)")
    connection.rollback()
    answers.append(connection.in_transaction)
    context.run(connection, "INSERT INTO driver_transactions VALUES (2)")
    answers.append(connection.in_transaction)
    connection.commit()
    answers.append(connection.in_transaction)
    answers.append(context.run(connection, "SELECT * FROM driver_transactions"))
    return answers


@check("cursor.warnings_of_the_driver")
def driver_warnings(context):
    connection = context.connect(typed=True)
    connection.get_warnings = True
    cursor = connection.cursor()
    cursor.execute("SELECT CAST('1x' AS SIGNED)")
    return [plain(cursor.fetchall()), plain(cursor.warnings)]


@check("session.settings_of_the_driver")
def driver_settings(context):
    connection = context.connect()
    connection.sql_mode = "ANSI_QUOTES"
    connection.time_zone = "+02:00"
    connection.set_charset_collation("latin1", "latin1_general_ci")
    context.move()
    return [context.run(connection, "SELECT @@sql_mode, @@time_zone, @@collation_connection"),
            plain(connection.time_zone), plain(connection.sql_mode)]


if __name__ == "__main__":
    main(Driver())
