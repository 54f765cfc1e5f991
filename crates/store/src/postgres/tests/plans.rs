//! No statement walks a whole table that grows.
//!
//! Asked of the server, for every statement that random units and all questions made, while the
//! tables are small: that is when plans are made that are kept.

use std::collections::BTreeSet;

use crate::Store;
use crate::conformance::fixture::{T0, acquire};
use crate::conformance::model::Model;

use super::super::server::fresh_schema;
use super::{Rival, open};

/// Tables that hold a row for each name, shard or queue at most.
const SMALL: [&str; 7] =
    ["queues", "namespaces", "calendars", "leases", "meta", "counters", "schema_versions"];

/// The table that a line of a plan scans.
fn scanned(line: &str) -> Option<&str> {
    line.split_once(" on ")?.1.split(' ').next().filter(|_| line.contains(" Scan "))
}

/// Whether a plan reads all of a table that grows: it scans one without an index, or all of an
/// index with no limit, or keeps what it read in a hash table.
fn walks(plan: &str, sql: &str) -> bool {
    let lines: Vec<&str> = plan.lines().collect();
    lines.iter().enumerate().any(|(n, line)| {
        let grows = scanned(line).is_some_and(|table| !SMALL.contains(&table));
        let by_index = line.contains("Index");
        let bounded = lines.get(n + 1).is_some_and(|next| next.contains("Index Cond"));
        let whole = line.contains("Seq Scan")
            || by_index && line.contains(" Scan ") && !bounded && !sql.contains("LIMIT");
        grows && whole || line.contains("hashed SubPlan") || line.contains("Hash Join")
    })
}

#[test]
fn no_statement_walks_a_table_that_grows() {
    let schema = fresh_schema();
    let store = open(&schema);
    let mut model = Model::new(store.clone(), store.clone(), 7);
    (0..150).for_each(|_| model.step());
    model.compare();
    store.leases(&acquire("n1", &[crate::Shard(9)], T0)).unwrap();
    let mut statements: BTreeSet<(&str, usize)> = BTreeSet::new();
    statements.extend(store.writer.lock().unwrap().prepared());
    statements.extend(store.lease_keeper.lock().unwrap().as_ref().unwrap().prepared());
    let mut readers = [store.question().unwrap(), store.question().unwrap()];
    readers.iter_mut().for_each(|reader| statements.extend(reader.conn().prepared()));
    let data = |sql: &str| {
        let begin = sql.trim_start();
        ["SELECT", "WITH", "INSERT", "UPDATE", "DELETE"].iter().any(|word| begin.starts_with(word))
    };
    statements.retain(|(sql, _)| data(sql));
    assert!(statements.len() > 60, "{}", statements.len());

    let mut rival = Rival::new(&schema);
    let mut bad = Vec::new();
    for (sql, params) in statements {
        rival.run(&format!("PREPARE asked AS {sql}"));
        let nulls = vec!["NULL"; params].join(", ");
        let given = if params > 0 { format!("({nulls})") } else { String::new() };
        let plan = rival.plan(&format!("EXPLAIN EXECUTE asked{given}"));
        if walks(&plan, sql) {
            bad.push(format!("{sql}\n{plan}"));
        }
        rival.run("DEALLOCATE asked");
    }
    assert!(bad.is_empty(), "{}", bad.join("\n\n"));
}
