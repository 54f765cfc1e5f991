//! Everything that is measured: one row a subject, one adapter a crate.

mod delay_queue;
mod hash_wheel;
mod heap;
mod nexus;
mod ours;
mod skip_map;
mod slab_wheel;
mod tree;

use anyhow::{Result, bail};
use tourbillon_wheel::{BinaryHeapQueue, HashedWheel, HierarchicalWheel};

use super::phases::{self, Measured, Phase, Work};
use super::subject::Subject;
use super::verify;
use ours::Ours;

/// The subject that the others are compared with.
pub(crate) const BASE: &str = "HierarchicalWheel";

/// A subject, and what can be done with it.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) idles: bool,
    pub(crate) verify: fn() -> Result<usize>,
    pub(crate) measure: fn(Phase, &Work) -> Measured,
}

/// All of them, in the order in which they are measured and shown.
pub(crate) const ALL: &[Entry] = &[
    entry::<Ours<HierarchicalWheel<u64>>>(),
    entry::<Ours<HashedWheel<u64>>>(),
    entry::<Ours<BinaryHeapQueue<u64>>>(),
    entry::<heap::LazyHeap>(),
    entry::<tree::Tree>(),
    entry::<skip_map::Skip>(),
    entry::<delay_queue::Delays>(),
    entry::<nexus::Nexus>(),
    entry::<slab_wheel::Slab>(),
    entry::<hash_wheel::HashWheel>(),
];

const fn entry<S: Subject>() -> Entry {
    Entry {
        name: S::NAME,
        idles: S::IDLES,
        verify: verify::verify::<S>,
        measure: phases::measure::<S>,
    }
}

/// The named ones, or all when none is named.
pub(crate) fn chosen(names: &[String]) -> Result<Vec<&'static Entry>> {
    for name in names {
        if !ALL.iter().any(|entry| entry.name == name) {
            let all: Vec<&str> = ALL.iter().map(|entry| entry.name).collect();
            bail!("no subject is called `{name}`; there are {}", all.join(", "));
        }
    }
    Ok(ALL
        .iter()
        .filter(|entry| names.is_empty() || names.iter().any(|n| n == entry.name))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let Err(error) = chosen(&["Sundial".to_owned()]) else { panic!("there is a sundial") };
        assert!(ALL.iter().all(|entry| error.to_string().contains(entry.name)), "{error}");
        assert_eq!(chosen(&[BASE.to_owned()]).expect("the base is there").len(), 1);
        assert_eq!(chosen(&[]).expect("all are there").len(), ALL.len());
    }
}
