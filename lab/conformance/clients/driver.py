"""What the drivers for the shared checks have in common."""

from common import plain, rows


class Driver:
    """Calls that mean the same in all drivers."""

    def close(self, connection):
        connection.close()

    def callproc(self, cursor, name, arguments):
        cursor.callproc(name, arguments)

    def execute_multi(self, cursor, sql):
        cursor.execute(sql)


class MySQLdbLike(Driver):
    """MySQLdb's interface, which PyMySQL has too. `cursors` is the module of their cursor classes."""

    has_prepared = False
    cursors = None

    def error(self, error):
        return plain(error.args)

    def cursor(self, connection, kind="tuple"):
        names = {"tuple": "Cursor", "dict": "DictCursor", "unbuffered": "SSCursor", "unbuffered_dict": "SSDictCursor"}
        return connection.cursor(getattr(self.cursors, names[kind]))

    def all_sets(self, cursor):
        sets = [[cursor.rowcount, rows(cursor.fetchall())]]
        while cursor.nextset():
            sets.append([cursor.rowcount, rows(cursor.fetchall())])
        return sets

    def thread_id(self, connection):
        return connection.thread_id()

    def server_version(self, connection):
        return connection.get_server_info()

    def select_db(self, connection, name):
        connection.select_db(name)

    def autocommit(self, connection, on):
        connection.autocommit(on)

    def get_autocommit(self, connection):
        return connection.get_autocommit()
