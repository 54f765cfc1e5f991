//! Wheels as shown.

use tourbillon_wire::Wheels;

/// The wheels of a node.
pub(crate) fn wheels(_view: &crate::node_iface::WheelView, node: &str) -> Wheels {
    Wheels { node: node.to_owned(), wheels: Vec::new() }
}
