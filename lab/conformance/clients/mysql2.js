// mysql2 for Node.js: asynchronous, text and binary protocol, session state changes as the server reports them.
'use strict';

const crypto = require('crypto');
const fs = require('fs');
const { Readable } = require('stream');
const mysql = require('mysql2');

const LONGEST_VALUE = 200; // of what is longer, length and hash are compared
const MOST_ROWS = 60;
const CHECK_MILLISECONDS = 45_000;
const MOVERS = 3;

const config = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const checks = [];

function check(name, run, server) {
  if (name.includes(config.only) && (!server || server === config.server)) checks.push({ name, run });
}

function plain(value) {
  if (value === null || value === undefined || typeof value === 'number' || typeof value === 'boolean') return value ?? null;
  if (typeof value === 'bigint') return `n:${value}`;
  if (Buffer.isBuffer(value) || typeof value === 'string') {
    const kind = typeof value === 'string' ? 's' : 'x';
    const bytes = Buffer.from(value);
    if (bytes.length > LONGEST_VALUE) return { [kind]: bytes.length, sha1: crypto.createHash('sha1').update(bytes).digest('hex') };
    return `${kind}:${kind === 's' ? value : bytes.toString('hex')}`;
  }
  if (value instanceof Date) return `date:${value.toISOString()}`;
  if (Array.isArray(value)) return value.map(plain);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
}

function rowsOf(values) {
  const all = values.map(plain);
  if (all.length <= MOST_ROWS) return all;
  return { rows: all.length, sha1: crypto.createHash('sha1').update(JSON.stringify(all)).digest('hex') };
}

function errorOf(error) {
  return { error: [error.errno ?? null, error.sqlState ?? null, error.sqlMessage ?? error.message, error.fatal ?? null] };
}

const columnOf = (field) => [
  field.schema, field.table, field.orgTable, field.name, field.orgName,
  field.characterSet, field.columnLength, field.columnType, field.flags, field.decimals,
];

function described(result, fields) {
  if (fields) return { columns: fields.map(columnOf), rows: rowsOf(result) };
  if (!result) return null;
  return {
    affected: plain(result.affectedRows), insertId: plain(result.insertId), info: result.info, status: result.serverStatus,
    warnings: result.warningStatus, changed: plain(result.changedRows), states: statesOf(result.stateChanges),
  };
}

// What the server reported, without its number of the statement.
function statesOf(changes) {
  if (!changes) return null;
  const { statement_id: _, ...variables } = changes.systemVariables ?? {};
  return plain({ ...changes, systemVariables: variables });
}

// A connection's outcome of a statement: one entry for each result.
function outcome(connection, method, sql, params) {
  return new Promise((resolve) => {
    connection[method]({ sql, rowsAsArray: true, values: params }, (error, results, fields) => {
      if (error) resolve([errorOf(error)]);
      else if (Array.isArray(fields) && fields.length && (Array.isArray(fields[0]) || fields.some((field) => field === undefined || Array.isArray(field))))
        resolve(results.map((result, index) => described(result, fields[index])));
      else resolve([described(results, fields)]);
    });
  });
}

class Context {
  constructor(options = {}) {
    this.options = options;
    this.opened = [];
    this.named = new Map();
  }

  async connect(more = {}) {
    const { tls, tables, found_rows: found, database = config.schema, user = 'conf', ...rest } = { ...this.options, ...more };
    const connection = mysql.createConnection({
      host: config.host, port: config.port, user, password: config.passwords[user], multipleStatements: true,
      database: database === '-' ? undefined : database, charset: 'utf8mb4', connectTimeout: 15_000, dateStrings: true,
      supportBigNumbers: true, bigNumberStrings: true, ssl: tls ? { rejectUnauthorized: false, ...tls } : undefined,
      flags: found === undefined ? undefined : [found ? 'FOUND_ROWS' : '-FOUND_ROWS'], ...rest,
    });
    connection.on('error', () => {}); // a statement reports it, too
    this.opened.push(connection);
    await new Promise((resolve, reject) => connection.connect((error) => (error ? reject(error) : resolve())));
    return connection;
  }

  async on(name) {
    if (!this.named.has(name)) this.named.set(name, await this.connect());
    return this.named.get(name);
  }

  run(connection, sql) {
    return outcome(connection, 'query', sql);
  }

  prepared(connection, sql, params) {
    return outcome(connection, 'execute', sql, params);
  }

  async move() {
    for (let mover = 0; mover < MOVERS; mover += 1) {
      const connection = await this.connect();
      await this.run(connection, 'BEGIN');
      await this.run(connection, 'SELECT 1');
    }
  }

  close() {
    for (const connection of this.opened) connection.destroy();
  }
}

const call = (object, method, ...values) =>
  new Promise((resolve) => object[method](...values, (error, result) => resolve(error ? errorOf(error) : plain(result ?? 'done'))));

const parameter = (value) => (typeof value === 'string' && value.startsWith('hex:') ? Buffer.from(value.slice(4), 'hex') : value);

async function runScript(context, script) {
  const outcomes = [];
  for (const step of script.steps) {
    if (step.kind === 'move') {
      await context.move();
      continue;
    }
    const connection = await context.on(step.on);
    if (step.kind === 'text') outcomes.push(await context.run(connection, step.sql));
    else outcomes.push(await context.prepared(connection, step.sql, step.params.map(parameter)));
  }
  return outcomes;
}

async function guarded(name, context, run) {
  const line = { check: name };
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${CHECK_MILLISECONDS} ms`)), CHECK_MILLISECONDS);
  });
  try {
    line.result = await Promise.race([run(context), late]);
  } catch (error) {
    line.broken = String(error);
    line.where = String(error.stack);
  }
  clearTimeout(timer);
  context.close();
  fs.writeSync(1, `${JSON.stringify(line)}\n`);
}

check('pipelining.queries_at_once', async (context) => {
  const connection = await context.connect();
  const statements = [
    "SET time_zone = '+05:00'", 'SELECT @@time_zone', 'BEGIN', 'SELECT 1', 'SELECT * FROM nothing_here', 'COMMIT', 'SELECT 2; SELECT 3', "SET @a = 5", 'SELECT @a',
  ];
  return Promise.all(statements.map((sql) => context.run(connection, sql)));
});

check('pipelining.executes_at_once', async (context) => {
  const connection = await context.connect();
  const numbers = Array.from({ length: 30 }, (_, number) => number);
  return Promise.all(numbers.map((number) => context.prepared(connection, `SELECT ${number % 7}, ?`, [number])));
});

check('pipelining.before_the_login_is_done', async (context) => {
  const connection = mysql.createConnection({
    host: config.host, port: config.port, user: 'conf', password: config.passwords.conf, database: config.schema,
  });
  context.opened.push(connection);
  return Promise.all([context.run(connection, 'SELECT 1'), context.run(connection, 'SELECT DATABASE()')]);
});

check('login.errors_of_mysql2', async (context) => {
  const results = [];
  for (const options of [{ password: 'wrong' }, { database: 'no_such_schema' }, { user: 'nobody_like_this', password: 'x' }]) {
    results.push(await context.connect(options).then(() => 'connected', errorOf));
  }
  return results;
});

check('login.tls_of_mysql2', async (context) => {
  const results = [];
  for (const version of ['TLSv1.2', 'TLSv1.3']) {
    const connection = await context.connect({ tls: { minVersion: version, maxVersion: version } });
    results.push(await context.run(connection, 'SELECT DATABASE()'));
  }
  return results;
}, 'mysql');

check('login.compression_of_mysql2', async (context) => {
  const connection = await context.connect({ compress: true });
  return [
    await context.run(connection, "SELECT 'short'"), await context.run(connection, "SELECT REPEAT('x', 1000000)"),
    await context.run(connection, `SELECT LENGTH('${'y'.repeat(3_000_000)}')`), await context.prepared(connection, 'SELECT ?', [1]),
  ];
});

check('login.connect_attributes_of_mysql2', async (context) => {
  const connection = await context.connect({ connectAttributes: { conf_key: 'value', other: 'ü' } });
  return context.run(connection, 'SELECT 1');
});

check('login.connection_id_of_mysql2', async (context) => {
  const connection = await context.connect();
  const answers = [];
  for (let turn = 0; turn < 2; turn += 1) {
    const [{ rows }] = await context.run(connection, 'SELECT CONNECTION_ID()');
    answers.push(String(rows[0][0]).replace('s:', '') === String(connection.threadId));
    await context.move();
  }
  return answers;
});

check('login.found_rows_of_mysql2', async (context) => {
  const results = [];
  for (const found of [true, false]) {
    const connection = await context.connect({ found_rows: found });
    await context.run(connection, `CREATE TABLE found_rows_${found} (a INT)`);
    await context.run(connection, `INSERT INTO found_rows_${found} VALUES (1), (2)`);
    results.push(await context.run(connection, `UPDATE found_rows_${found} SET a = 1`));
  }
  return results;
});

check('commands.of_mysql2', async (context) => {
  const connection = await context.connect();
  return [
    await call(connection, 'ping'), await call(connection, 'beginTransaction'),
    await context.run(connection, 'CREATE TEMPORARY TABLE commands_of_mysql2 (a INT)'),
    await call(connection, 'rollback'), await call(connection, 'commit'),
  ];
});

check('commands.change_user_of_mysql2', async (context) => {
  const connection = await context.connect();
  await context.run(connection, "SET @a = 1, time_zone = '+03:00'");
  const answers = [await context.prepared(connection, 'SELECT ?, @a', [1])];
  const changed = await call(connection, 'changeUser', { user: 'conf_other', password: config.passwords.conf_other, database: 'information_schema' });
  answers.push(typeof changed === 'object' && 'error' in changed ? changed : 'changed');
  answers.push(await context.run(connection, 'SELECT CURRENT_USER(), DATABASE(), @a, @@time_zone'));
  await context.move();
  answers.push(await context.run(connection, 'SELECT CURRENT_USER(), DATABASE()'));
  const refused = await call(connection, 'changeUser', { user: 'conf', password: 'wrong' });
  answers.push(typeof refused === 'object' && 'error' in refused ? refused : 'changed');
  return answers;
});

check('prepared.unprepare', async (context) => {
  const connection = await context.connect();
  const answers = [];
  for (let turn = 0; turn < 3; turn += 1) {
    answers.push(await context.prepared(connection, 'SELECT ? AS a', [turn]));
    connection.unprepare({ sql: 'SELECT ? AS a', rowsAsArray: true });
    await context.move();
  }
  return answers;
});

check('prepared.explicit', async (context) => {
  const connection = await context.connect();
  const statement = await new Promise((resolve, reject) =>
    connection.prepare('SELECT ? + 1 AS a, ? AS b', (error, made) => (error ? reject(error) : resolve(made))));
  const answers = [statement.parameters.length, statement.columns.map(columnOf)];
  for (const values of [[1, 'x'], [null, null], ['5', Buffer.from([0, 255])]]) {
    answers.push(await call(statement, 'execute', values));
    await context.move();
  }
  statement.close();
  return answers;
});

check('prepared.values', async (context) => {
  const connection = await context.connect();
  const values = [1, -1, 1.5, true, 'é🎉', new Date(Date.UTC(2024, 1, 29, 1, 2, 3, 4)), { a: [1, 'x'] }, null, '', 2 ** 40];
  return context.prepared(connection, `SELECT ${values.map(() => '?').join(', ')}`, values);
});

check('results.streamed', async (context) => {
  const connection = await context.connect();
  const sql = 'WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < 900) SELECT n, REPEAT(n, 1000) FROM c';
  let count = 0;
  for await (const row of connection.query({ sql, rowsAsArray: true }).stream({ highWaterMark: 2 })) count += row[0];
  return [count, await context.run(connection, "SELECT 'goes on'")];
});

check('results.abandoned', async (context) => {
  for (let turn = 0; turn < 3; turn += 1) {
    const connection = await context.connect();
    const sql = "WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < 900) SELECT c.n, REPEAT('x', 5000) FROM c, c AS d";
    await new Promise((resolve) => connection.query({ sql }).on('result', resolve).on('error', resolve));
    connection.destroy();
  }
  return context.run(await context.connect(), "SELECT 'clean', DATABASE()");
});

check('infile.streamed', async (context) => {
  const connection = await context.connect();
  await context.run(connection, 'CREATE TABLE infile_streamed (a INT, b VARCHAR(20))');
  const sql = "LOAD DATA LOCAL INFILE 'made up' INTO TABLE infile_streamed FIELDS TERMINATED BY ','";
  const results = [];
  for (const text of [['1,one\n', '2,two\n'], [], Array.from({ length: 2000 }, () => '3,three\n')]) {
    results.push(await new Promise((resolve) => {
      connection.query({ sql, infileStreamFactory: () => Readable.from(text, { objectMode: false }) }, (error, result) =>
        resolve(error ? errorOf(error) : described(result)));
    }));
  }
  results.push(await context.run(connection, 'SELECT COUNT(*), MAX(a) FROM infile_streamed'));
  return results;
});

check('infile.refused_by_the_client', async (context) => {
  const connection = await context.connect();
  await context.run(connection, 'CREATE TABLE infile_refused (a INT)');
  return [
    await context.run(connection, "LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE infile_refused"),
    (await context.run(connection, 'SELECT COUNT(*) FROM infile_refused'))[0],
  ];
});

check('tracking.states', async (context) => {
  const connection = await context.connect();
  const answers = [];
  for (const sql of [
    'SELECT 1', "SET time_zone = '+01:00'", 'USE information_schema', 'SET autocommit = 0', 'SET NAMES latin1', 'SET @a = 1',
    "SET session_track_system_variables = '*'", "SET sql_mode = ''", "SET session_track_state_change = ON", 'SET @b = 2',
    "SET session_track_transaction_info = 'CHARACTERISTICS'", 'START TRANSACTION READ ONLY', 'COMMIT', 'SET session_track_schema = OFF',
    `USE ${config.schema}`,
  ]) answers.push(await context.run(connection, sql));
  return answers;
});

check('tracking.gtids', async (context) => {
  const connection = await context.connect();
  const [setting] = await context.run(connection, 'SET session_track_gtids = OWN_GTID');
  const [made] = await context.run(connection, 'CREATE TABLE tracking_gtids (a INT)');
  return [plain(setting.states), Object.keys(made.states ?? {}), made.states?.trackStateChange];
}, 'mysql');

check('tracking.after_move', async (context) => {
  const connection = await context.connect();
  const answers = [await context.run(connection, "SET sql_mode = 'ANSI_QUOTES', time_zone = '+01:00'")];
  for (const sql of ['SELECT 1', 'DO 1', 'USE information_schema', 'DO 2', 'SET NAMES sjis']) {
    await context.move();
    answers.push(await context.run(connection, sql));
  }
  return answers;
});

check('concurrency.twenty_sessions', async (context) => {
  const sessions = await Promise.all(Array.from({ length: 20 }, () => context.connect()));
  await Promise.all(sessions.map((session, number) => context.run(session, `SET @me = ${number}, group_concat_max_len = ${number + 100}`)));
  const answers = await Promise.all(sessions.map(async (session, number) => {
    const rows = [];
    for (let turn = 0; turn < 5; turn += 1) {
      const [first] = await context.run(session, 'SELECT @me, @@group_concat_max_len');
      const [second] = await context.prepared(session, 'SELECT ? + 0, @@group_concat_max_len', [number]);
      rows.push(first.rows ?? first, second.rows ?? second);
    }
    return rows;
  }));
  return answers;
});

async function main() {
  for (const script of config.scripts) {
    const { charset, ...options } = script.options;
    await guarded(script.name, new Context(charset ? { ...options, charset: 'LATIN1_SWEDISH_CI' } : options), (context) => runScript(context, script));
  }
  for (const { name, run } of checks) await guarded(name, new Context(), run);
  process.exit(0);
}

main();
