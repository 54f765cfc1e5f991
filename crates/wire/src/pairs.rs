//! A JSON object of strings as a list of pairs: headers, environment, tags.
//!
//! The order is the order written; a name given twice is an error. A list costs less than a map
//! for the handful of entries these objects have, and building one hashes nothing.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use utoipa::ToSchema;

/// Names with their values, each name once, in the order written.
#[derive(Debug, Clone, PartialEq, Eq, Default, ToSchema)]
#[schema(value_type = std::collections::BTreeMap<String, String>)]
pub struct Pairs(Vec<(String, String)>);

impl Pairs {
    /// No pairs. Allocates nothing.
    pub const fn new() -> Pairs {
        Pairs(Vec::new())
    }

    /// The value under `name`, compared exactly. Linear in the number of pairs.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// Adds a pair or replaces the value of one with the same name, and gives back the old value.
    pub fn insert(&mut self, name: String, value: String) -> Option<String> {
        match self.0.iter_mut().find(|(n, _)| *n == name) {
            Some((_, old)) => Some(std::mem::replace(old, value)),
            None => {
                self.0.push((name, value));
                None
            }
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The pairs in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v.as_str()))
    }

    /// The pairs as a list.
    pub fn into_vec(self) -> Vec<(String, String)> {
        self.0
    }
}

impl IntoIterator for Pairs {
    type Item = (String, String);
    type IntoIter = std::vec::IntoIter<(String, String)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl FromIterator<(String, String)> for Pairs {
    /// A name that comes again replaces the earlier value.
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Pairs {
        let mut all = Pairs::new();
        for (name, value) in pairs {
            all.insert(name, value);
        }
        all
    }
}

impl Serialize for Pairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The most pairs one object is read with; the server's own bounds are far below.
const PAIRS_MAX: usize = 1_000;

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pairs, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs: Vec<(String, String)> = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    let value = map.next_value()?;
                    if pairs.iter().any(|(n, _)| *n == name) {
                        return Err(de::Error::custom(format_args!("`{name}` is given twice")));
                    }
                    // Looking for a double is quadratic, so the length must have a bound.
                    if pairs.len() == PAIRS_MAX {
                        return Err(de::Error::invalid_length(
                            PAIRS_MAX + 1,
                            &"at most 1000 names",
                        ));
                    }
                    pairs.push((name, value));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Object)
    }
}
