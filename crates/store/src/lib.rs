//! Domain types, the transition table, the Store trait, and its stores: memory and SQLite.
