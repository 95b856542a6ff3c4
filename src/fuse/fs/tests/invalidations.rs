//! Attributes that become stale before the kernel knows the node.

use std::ffi::OsStr;
use std::sync::Arc;

use fuser::INodeNo;
use parking_lot::Mutex;
use rustix::io::Errno;

use super::fixture::Adapter;
use crate::fuse::fs::kernel_cache::KernelCache;
use crate::fuse::inode::{NodeId, NodeTable};
use crate::fuse::inside::AttributeChange;

/// The number of the try at which the kernel knows a node, or has forgotten it.
const LAST: usize = 4;

/// A kernel that is slow to learn of nodes, and what it was asked to drop.
#[derive(Clone, Debug)]
struct SlowKernel {
    nodes: Arc<NodeTable>,
    is_forgetting: bool,
    asked: Arc<Mutex<Vec<NodeId>>>,
}

impl KernelCache for SlowKernel {
    fn drop_name(&self, _parent: NodeId, _name: &OsStr) -> std::io::Result<()> {
        Ok(())
    }

    fn drop_node(&self, node: NodeId, _offset: i64) -> Result<(), Errno> {
        let mut asked = self.asked.lock();
        asked.push(node);
        match asked.len() {
            LAST if self.is_forgetting => {
                self.nodes.forget(node, 1);
                Err(Errno::NOENT)
            }
            LAST => Ok(()),
            _ => Err(Errno::NOENT),
        }
    }
}

/// A change in the rep tree is answered when the kernel has dropped the attributes that the IBIp tree has just replied
/// with, and no node is asked for once it is forgotten.
#[test]
fn attributes_in_a_reply_on_its_way_are_invalidated_when_it_has_arrived() {
    for is_forgetting in [false, true] {
        let adapter = Adapter::new();
        let kernel = SlowKernel {
            nodes: Arc::clone(&adapter.namespace.nodes),
            is_forgetting,
            asked: Arc::default(),
        };
        let set = adapter.cache.set(Box::new(kernel.clone()));
        assert!(set.is_ok());
        let (item, rep) = adapter.mint();
        let ibip = item.names.ibip().expect("an IBIp").to_string();
        let (rep, ibip) = (adapter.number(&rep), adapter.number(&ibip));
        assert_ne!(rep, ibip);
        kernel.asked.lock().clear();

        let change = AttributeChange {
            mode: Some(0o700),
            ..AttributeChange::default()
        };
        let changed = adapter.set_attributes(adapter.caller, rep, None, change);
        let (_, attr) = adapter.wait(changed).expect("changed");
        assert_eq!(attr.permissions & 0o777, 0o700);
        let asked = std::mem::take(&mut *kernel.asked.lock());
        assert_eq!(asked, [NodeId(ibip.0); LAST], "forgetting: {is_forgetting}");
        assert_eq!(adapter.node(ibip).is_err(), is_forgetting);
        assert!(adapter.node(INodeNo(rep.0)).is_ok());
    }
}
