"""Checks that the three Python drivers share: what needs more than a list of statements."""

import os
import re
import tempfile
import threading
import time

from common import check, plain, rows

LOCK_SECONDS = 20
NUMBERS = "WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < 900)"


# --- login ---


@check("login.refused")
def login_refused(context):
    return [
        context.error_of(context.connect, password="wrong"),
        context.error_of(context.connect, password=""),
        "error" in context.error_of(context.connect, user="nobody_like_this", password="x"),  # by any plugin
        context.error_of(context.connect, database="no_such_schema"),
        context.error_of(context.connect, user="conf_reader", database="mysql"),
    ]


@check("login.with_and_without_schema")
def login_schema(context):
    return [context.run(context.connect(database=name), "SELECT DATABASE()") for name in ("-", "information_schema")]


@check("login.empty_password")
def login_empty_password(context):
    connection = context.connect(user="conf_empty", password="", database="-")
    return context.run(connection, "SELECT CURRENT_USER()")


@check("login.tls", server="mysql")
def login_tls(context):
    connection = context.connect(tls=True)
    return [context.run(connection, "SELECT 'over TLS'"), context.run(connection, "SELECT REPEAT('x', 100000)")]


@check("login.twenty_connections")
def login_many(context):
    connections = [context.connect() for _ in range(20)]
    return [context.value(connection, "SELECT DATABASE()") == context.value(connections[0], "SELECT DATABASE()")
            for connection in connections]


@check("login.version_of_the_greeting")
def login_version(context):
    connection = context.connect()
    version = context.value(connection, "SELECT VERSION()")
    return [plain(context.driver.server_version(connection)), plain(version)]


@check("login.connection_id")
def login_connection_id(context):
    connection = context.connect()
    answers = []
    for _ in range(2):
        answers.append(int(context.value(connection, "SELECT CONNECTION_ID()")) == context.driver.thread_id(connection))
        answers.append(int(context.value(connection, "SELECT CONNECTION_ID() + 0")) == context.driver.thread_id(connection))
        answers.append(int(context.value(connection, "SELECT @@pseudo_thread_id")) == context.driver.thread_id(connection))
        context.move()
    return answers


@check("login.init_command")
def login_init_command(context):
    connection = context.connect(init_command="SET time_zone = '+07:00'")
    context.move()
    return context.run(connection, "SELECT @@time_zone")


@check("login.found_rows_flag")
def found_rows_flag(context):
    results = []
    for found in (False, True, False):
        connection = context.connect(found_rows=found)
        table = f"found_rows_{len(results)}"
        context.run(connection, f"CREATE TABLE {table} (a INT)")
        context.run(connection, f"INSERT INTO {table} VALUES (1), (1), (2)")
        results.append(context.run(connection, f"UPDATE {table} SET a = 1"))
    return results


# --- commands ---


@check("commands.ping")
def ping(context):
    connection = context.connect()
    context.driver.ping(connection)
    context.run(connection, "BEGIN")
    context.driver.ping(connection)
    return context.run(connection, "SELECT 1")


@check("commands.select_db")
def select_db(context):
    connection = context.connect()
    driver = context.driver
    answers = [context.error_of(driver.select_db, connection, "information_schema")]
    context.move()
    answers.append(context.run(connection, "SELECT DATABASE()"))
    answers.append(context.error_of(driver.select_db, connection, "no_such_schema"))
    answers.append(context.run(connection, "SELECT DATABASE()"))
    answers.append(context.error_of(driver.select_db, connection, context.config["schema"]))
    answers.append(context.run(connection, "SELECT DATABASE()"))
    return answers


@check("commands.autocommit")
def autocommit(context):
    connection, other = context.connect(typed=True), context.connect()
    context.run(connection, "CREATE TABLE autocommit_t (a INT) ENGINE=InnoDB")
    context.driver.autocommit(connection, False)
    answers = [context.driver.get_autocommit(connection), context.run(connection, "SELECT @@autocommit")]
    context.run(connection, "COMMIT")
    context.move()
    answers.append(context.run(connection, "INSERT INTO autocommit_t VALUES (1)"))
    answers.append(context.run(other, "SELECT COUNT(*) FROM autocommit_t"))
    connection.rollback()
    answers.append(context.run(connection, "SELECT COUNT(*) FROM autocommit_t"))
    context.run(connection, "INSERT INTO autocommit_t VALUES (2)")
    connection.commit()
    context.driver.autocommit(connection, True)
    answers.append(context.run(other, "SELECT a FROM autocommit_t"))
    answers.append(context.driver.get_autocommit(connection))
    return answers


# --- KILL ---


def in_background(context, connection, sql):
    """Starts `sql` on `connection`; the function that is returned waits for its outcome."""
    outcome = []
    thread = threading.Thread(target=lambda: outcome.append(context.run(connection, sql)), daemon=True)
    thread.start()

    def finish():
        thread.join(LOCK_SECONDS)
        return outcome[0] if outcome else "did not end"

    return finish


def wait_until_running(context, needle):
    """Until the server itself runs a statement with `needle` in it in this client's schema."""
    deadline = time.monotonic() + LOCK_SECONDS
    schema = context.config["schema"].encode()
    with context.direct() as watcher:
        while time.monotonic() < deadline:
            cursor = watcher.cursor()
            cursor.execute("SHOW FULL PROCESSLIST")
            if any(row[3] == schema and needle.encode() in (row[7] or b"") for row in cursor.fetchall()):
                return
            time.sleep(0.02)
    raise TimeoutError(f"the server does not run {needle}")


@check("kill.ids_in_a_process_list")
def process_list(context):
    connection = context.connect()
    own = rf"\[\W*(?:[sb]:)?{context.driver.thread_id(connection)}\W"
    return re.search(own, str(context.run(connection, "SHOW PROCESSLIST"))) is not None


@check("kill.query")
def kill_query(context):
    connection, killer = context.connect(), context.connect()
    number = context.driver.thread_id(connection)
    finish = in_background(context, connection, "SELECT SLEEP(15) AS kill_query_sleep")
    wait_until_running(context, "kill_query_sleep")
    answer = context.run(killer, f"KILL QUERY {number}")
    return [answer, finish(), context.run(connection, "SELECT 'goes on'")]


@check("kill.query_in_a_long_statement")
def kill_long(context):
    connection, killer = context.connect(), context.connect()
    context.run(connection, "BEGIN")
    number = context.driver.thread_id(connection)
    finish = in_background(
        context, connection,
        f"{NUMBERS} SELECT COUNT(*) AS kill_long FROM c, c AS d, c AS e, c AS f")
    wait_until_running(context, "kill_long")
    answer = context.run(killer, f"/* own */ KILL QUERY {number}")
    return [answer, finish(), context.run(connection, "SELECT 'goes on'"), context.run(connection, "COMMIT")]


@check("kill.connection")
def kill_connection(context):
    connection, killer = context.connect(), context.connect()
    context.run(connection, "SELECT 1")
    answer = context.run(killer, f"KILL {context.driver.thread_id(connection)}")
    time.sleep(0.2)
    after = context.run(connection, "SELECT 1")
    return [answer, "error" in after[-1], context.run(killer, "SELECT 'goes on'")]


@check("kill.in_executed_comment")
def kill_in_comment(context):
    results = []
    for text in ("/*! KILL {} */", "/*!50000 KILL CONNECTION {}*/", "/*!50000 KILL*/ {}", "/*!KILL QUERY {} */;",
                 "/* x */ /*! KILL */ /*!40100 {} */", "/*!99999 KILL {} */", "/*!99999 KILL */ DO {}", "/*M! KILL {} */",
                 "/*M!100100 KILL {} */", "/*!100100 KILL {} */", "/*!80000 KILL {} */"):
        connection, killer = context.connect(), context.connect()
        context.run(connection, "SELECT 1")
        answer = context.run(killer, text.format(context.driver.thread_id(connection)))
        time.sleep(0.2)
        results.append([text, answer, "error" in context.run(connection, "SELECT 1")[-1]])
    return results


@check("kill.several_at_once")
def kill_several(context):
    connections, killer = [context.connect() for _ in range(3)], context.connect(typed=True)
    for connection in connections:
        context.run(connection, "SELECT 1")
    first, second, third = (context.driver.thread_id(connection) for connection in connections)
    cursor = context.driver.cursor(killer)
    try:
        context.driver.execute_multi(cursor, f"KILL {first}; KILL {second}; KILL 999999999; KILL {third}")
        answers = context.driver.all_sets(cursor)
    except Exception as error:  # noqa: BLE001: each driver has its own
        answers = str(error)
    time.sleep(0.2)
    return [answers, ["error" in context.run(connection, "SELECT 1")[-1] for connection in connections]]


@check("kill.own_query")
def kill_own(context):
    connection = context.connect()
    return [context.run(connection, f"KILL QUERY {context.driver.thread_id(connection)}"),
            context.run(connection, "SELECT 1")]


@check("kill.own_connection")
def kill_own_connection(context):
    connection = context.connect()
    return context.run(connection, f"KILL CONNECTION {context.driver.thread_id(connection)}")


@check("kill.unknown_id")
def kill_unknown(context):
    connection = context.connect()
    return [context.run(connection, "KILL QUERY 3999999999"), context.run(connection, "KILL 3999999999"),
            context.run(connection, "KILL QUERY 'x'"), context.run(connection, "SELECT 1")]


@check("kill.while_idle_in_transaction")
def kill_idle_transaction(context):
    connection, killer = context.connect(), context.connect()
    context.run(connection, "CREATE TABLE kill_idle (a INT PRIMARY KEY) ENGINE=InnoDB")
    context.run(connection, "BEGIN")
    context.run(connection, "INSERT INTO kill_idle VALUES (1)")
    context.run(killer, f"KILL {context.driver.thread_id(connection)}")
    context.run(killer, "SET innodb_lock_wait_timeout = 15")
    return context.run(killer, "INSERT INTO kill_idle VALUES (1)")


# --- locks between sessions ---


@check("errors.deadlock")
def deadlock(context):
    first, second = context.connect(), context.connect()
    context.run(first, "CREATE TABLE deadlock_t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB")
    context.run(first, "INSERT INTO deadlock_t VALUES (1, 0), (2, 0), (3, 0), (4, 0)")
    context.run(first, "BEGIN")
    context.run(second, "BEGIN")
    # The one that has changed less is the victim.
    for number in (1, 3, 4):
        context.run(first, f"UPDATE deadlock_t SET v = 1 WHERE id = {number}")
    context.run(second, "UPDATE deadlock_t SET v = 2 WHERE id = 2")
    finish = in_background(context, first, "UPDATE deadlock_t SET v = 1 WHERE id = 2")
    wait_until_running(context, "SET v = 1 WHERE id = 2")
    victim = context.run(second, "UPDATE deadlock_t SET v = 2 WHERE id = 1")
    after = context.run(second, "SELECT 'goes on'")
    winner = finish()
    context.run(first, "COMMIT")
    return [victim, after, winner, context.run(second, "SELECT * FROM deadlock_t ORDER BY id")]


@check("session.lock_is_freed_by_disconnect")
def lock_freed(context):
    connection, other = context.connect(), context.connect()
    name = f"{context.config['schema']}_freed"
    context.run(connection, f"SELECT GET_LOCK('{name}', 0)")
    context.driver.close(connection)
    return context.run(other, f"SELECT GET_LOCK('{name}', 10) AS taken, RELEASE_LOCK('{name}') AS given")


@check("session.transaction_is_undone_by_disconnect")
def transaction_undone(context):
    connection, other = context.connect(), context.connect()
    context.run(connection, "CREATE TABLE undone (a INT PRIMARY KEY) ENGINE=InnoDB")
    context.run(connection, "BEGIN")
    context.run(connection, "INSERT INTO undone VALUES (1)")
    context.driver.close(connection)
    context.run(other, "SET innodb_lock_wait_timeout = 15")
    return context.run(other, "INSERT INTO undone VALUES (1)")


@check("session.two_sessions_alternate")
def alternate(context):
    """Two sessions with settings of their own, statement by statement."""
    first, second = context.connect(), context.connect()
    context.run(first, "SET time_zone = '+01:00', @who = 'first', sql_mode = 'ANSI_QUOTES'")
    context.run(second, "SET time_zone = '+02:00', sql_mode = ''")
    results = []
    for _ in range(5):
        results.append(context.run(first, "SELECT @@time_zone, @who, @@sql_mode"))
        results.append(context.run(second, "SELECT @@time_zone, @who, @@sql_mode"))
    return results


# --- LOCAL INFILE ---


def local_file(text):
    file = tempfile.NamedTemporaryFile("wb", suffix=".csv", delete=False)
    with file:
        file.write(text)
    return file.name


@check("infile.local")
def infile(context):
    connection = context.connect(local_infile=True)
    context.run(connection, "CREATE TABLE infile_t (a INT, b VARCHAR(20))")
    results = []
    for text in (b"1,one\n2,two\n3,\\N\n", b"", b"x,too long " + b"y" * 30 + b"\n", b"4,four\n" * 60_000):
        path = local_file(text)
        results.append(context.run(
            connection, f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE infile_t FIELDS TERMINATED BY ','"))
        os.unlink(path)
    results.append(context.run(connection, "SELECT COUNT(*), COUNT(b), MAX(a) FROM infile_t"))
    return results


@check("infile.file_missing")
def infile_missing(context):
    connection = context.connect(local_infile=True)
    context.run(connection, "CREATE TABLE infile_missing (a INT)")
    outcome = context.run(connection, "LOAD DATA LOCAL INFILE '/no/such/file' INTO TABLE infile_missing")
    return [outcome, context.run(connection, "SELECT COUNT(*) FROM infile_missing")]


@check("infile.errors")
def infile_errors(context):
    path = local_file(b"1\n2\n")
    allowed, refused = context.connect(local_infile=True), context.connect()
    context.run(allowed, "CREATE TABLE infile_errors (a INT PRIMARY KEY)")
    results = [
        context.run(allowed, f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE nothing_here"),
        context.run(refused, f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE infile_errors"),
        context.run(allowed, f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE infile_errors; SELECT 'second'"),
        context.run(allowed, f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE infile_errors"),
        context.run(allowed, "SHOW WARNINGS"),
    ]
    os.unlink(path)
    return results


# --- PEP 249 cursors ---


def fetched(cursor):
    return [plain(column[0:2]) for column in cursor.description or ()], rows(cursor.fetchall() if cursor.description else ())


@check("cursor.typed_values")
def typed_values(context):
    connection = context.connect(typed=True)
    cursor = context.driver.cursor(connection)
    cursor.execute(
        "SELECT 1, -1, 1.5, 1e3, 'é', x'4142', NULL, DATE '2024-01-01', TIME '01:02:03', TIMESTAMP '2024-01-01 00:00:00.5', b'1'")
    return fetched(cursor)


@check("cursor.parameters")
def parameters(context):
    connection = context.connect(typed=True)
    cursor = context.driver.cursor(connection)
    cursor.execute("CREATE TABLE cursor_parameters (a INT, b VARCHAR(50), c VARBINARY(50), d DATETIME, e DECIMAL(10, 3))")
    import datetime
    import decimal
    values = (1, "it's \\ \"é\" 🎉 \0 %", b"\0\xff'\\", datetime.datetime(2024, 2, 29, 1, 2, 3), decimal.Decimal("1.250"))
    cursor.execute("INSERT INTO cursor_parameters VALUES (%s, %s, %s, %s, %s)", values)
    cursor.execute("INSERT INTO cursor_parameters VALUES (%s, %s, %s, %s, %s)", (None,) * 5)
    cursor.execute("SELECT * FROM cursor_parameters")
    result = fetched(cursor)
    connection.commit()
    return result


@check("cursor.executemany")
def executemany(context):
    connection = context.connect(typed=True)
    cursor = context.driver.cursor(connection)
    cursor.execute("CREATE TABLE cursor_many (a INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(50))")
    cursor.executemany("INSERT INTO cursor_many (b) VALUES (%s)", [(f"row {n}",) for n in range(5000)])
    counts = [cursor.rowcount, cursor.lastrowid]
    cursor.executemany("UPDATE cursor_many SET b = %s WHERE a = %s", [("x", 1), ("y", 2), ("z", 9999)])
    counts.append(cursor.rowcount)
    cursor.execute("SELECT * FROM cursor_many ORDER BY a")
    counts.append(fetched(cursor))
    connection.commit()
    return counts


@check("cursor.dictionaries")
def dictionaries(context):
    connection = context.connect(typed=True)
    cursor = context.driver.cursor(connection, "dict")
    cursor.execute("SELECT 1 AS a, 'x' AS b UNION ALL SELECT 2, NULL")
    return plain(cursor.fetchall())


@check("cursor.fetch_pieces")
def fetch_pieces(context):
    connection = context.connect(typed=True)
    cursor = context.driver.cursor(connection, "unbuffered")
    cursor.execute("WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < 500) SELECT n, REPEAT('x', 1000) FROM c")
    pieces = [plain(cursor.fetchone()), plain(cursor.fetchmany(3)), len(cursor.fetchmany(100)), len(cursor.fetchall())]
    cursor.close()
    return [pieces, context.run(connection, "SELECT 'goes on'")]


@check("cursor.closed_midway")
def closed_midway(context):
    """A connection that is closed in the middle of a result, and what the next one gets."""
    for _ in range(3):
        connection = context.connect(typed=True)
        cursor = context.driver.cursor(connection, "unbuffered")
        cursor.execute(f"{NUMBERS} SELECT c.n, REPEAT('x', 5000) FROM c, c AS d")
        cursor.fetchone()
        context.driver.abandon(connection)
    return context.run(context.connect(), "SELECT 'clean', @@autocommit")


@check("cursor.callproc")
def callproc(context):
    connection = context.connect(typed=True)
    context.run(connection, "CREATE PROCEDURE cursor_callproc(IN a INT, OUT b INT) BEGIN SELECT a, 'first'; SELECT 'second'; SET b = a + 1; END")
    cursor = context.driver.cursor(connection)
    context.driver.callproc(cursor, "cursor_callproc", (1, 0))
    return [context.driver.all_sets(cursor), context.run(connection, "SELECT @_cursor_callproc_1, @_cursor_callproc_arg2")]


@check("cursor.nextset")
def nextset(context):
    connection = context.connect(typed=True)
    cursor = context.driver.cursor(connection)
    context.driver.execute_multi(cursor, "SELECT 1; DO 1; SELECT 2, 3")
    return context.driver.all_sets(cursor)


@check("cursor.long_statement")
def long_statement(context):
    connection = context.connect()
    big = "x" * 2_000_000
    return [context.run(connection, f"SELECT LENGTH('{big}') AS n"), context.run(connection, f"SELECT '{big}' AS a")]


@check("cursor.seventeen_megabytes_up")
def seventeen_up(context):
    connection = context.connect()
    return [context.run(connection, f"SELECT LENGTH('{'y' * 17_825_792}') AS n"), context.run(connection, "SELECT 1")]


@check("cursor.packet_limit_up")
def packet_limit_up(context):
    connection = context.connect()
    around = "SELECT LENGTH('') AS n"
    results = []
    for size in (2**24 - 3, 2**24 - 2, 2**24 - 1, 2**24):  # of the command's payload
        filling = "z" * (size - 1 - len(around))
        results.append(context.run(connection, around.replace("''", f"'{filling}'")))
    return results


@check("transactions.hundred_moves")
def hundred_moves(context):
    """Many short transactions of four sessions, each with a variable of its own."""
    sessions = [context.connect() for _ in range(4)]
    context.run(sessions[0], "CREATE TABLE hundred (id INT AUTO_INCREMENT PRIMARY KEY, who INT, zone VARCHAR(6)) ENGINE=InnoDB")
    for number, session in enumerate(sessions):
        context.run(session, f"SET time_zone = '+0{number}:00', NAMES utf8mb4")
        context.run(session, f"SET time_zone = '+0{number}:00'")
    for turn in range(25):
        for number, session in enumerate(sessions):
            context.run(session, "BEGIN")
            context.run(session, f"INSERT INTO hundred (who, zone) VALUES ({number}, @@time_zone)")
            context.run(session, "ROLLBACK" if turn % 5 == number else "COMMIT")
    return context.run(sessions[0], "SELECT who, zone, COUNT(*) FROM hundred GROUP BY who, zone ORDER BY who, zone")
