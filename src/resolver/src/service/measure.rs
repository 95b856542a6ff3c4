//! The reports of a resolver about itself.

use axum::http::Method;

use super::{MOST_RESOLUTIONS, Resolver, is_registration};
use crate::registry::RESOLVER_SERVICE;
use ibifs_formats::federation::PATH;
use ibifs_http::server::metrics::{MetricKind, MetricsText, Monitored, RequestKinds};

/// The kinds of requests to a resolver.
const KINDS: [&str; 4] = ["registration", "service", "page", "link"];

/// Returns how its requests are counted.
pub(super) fn kinds(resolver: &Resolver) -> RequestKinds {
    RequestKinds {
        names: &KINDS,
        of: |method: &Method, path, query| match path.trim_end_matches('/') {
            "" | RESOLVER_SERVICE if is_registration(method, query) => 0,
            RESOLVER_SERVICE if query.contains("servicesubject=") => 1,
            "" | PATH => 2,
            _ => 3,
        },
        url: resolver.url.clone(),
    }
}

impl Monitored for Resolver {
    fn trouble(&self) -> Option<String> {
        let version = self.registry.version();
        version.err().map(|error| error.to_string())
    }

    fn measure(&self, text: &mut MetricsText) {
        let name = "ibifs_resolver_archives";
        text.metric(
            name,
            MetricKind::Gauge,
            "Archives: included here, included with peers, registered but absent, and on lists of others.",
        );
        let all = self.archives.all();
        let included = all.iter().filter(|archive| archive.id.is_some()).count();
        for (state, count) in [
            ("included", included),
            ("peers", all.len() - included),
            ("absent", self.archives.absent()),
            ("federated", self.archives.federated().len()),
        ] {
            text.sample(name, &[("state", state)], count);
        }
        text.single(
            "ibifs_resolver_resolutions",
            MetricKind::Gauge,
            "Identifiers that are being resolved.",
            MOST_RESOLUTIONS.saturating_sub(self.turns.available_permits()),
        );
    }
}
