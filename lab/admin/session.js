// Runs statements with mysql2 and prints what each was answered, as JSON: session.js FILE.
'use strict';

const fs = require('fs');
const mysql = require('mysql2/promise');

// A cell. All are texts, as ProxySQL's are.
function text(value) {
  if (value === null || typeof value === 'string') return value;
  throw new Error(`${value} is a ${typeof value}`);
}

async function main() {
  const { statements, ...config } = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
  const connection = await mysql.createConnection({ ...config, dateStrings: true, rowsAsArray: true });
  const outcomes = [];
  for (const sql of statements) {
    try {
      const [result, fields] = await connection.query(sql);
      if (fields) outcomes.push({ columns: fields.map((field) => field.name), rows: result.map((row) => row.map(text)) });
      else outcomes.push({ ok: result.affectedRows });
    } catch (error) {
      if (!error.errno) throw error;
      outcomes.push({ error: [error.errno, error.sqlMessage] });
    }
  }
  process.stdout.write(JSON.stringify(outcomes));
  await connection.end();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
