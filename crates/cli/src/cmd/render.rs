//! `tapdeck render`: bytes in, the final screen out.

use std::io;

pub(crate) use tapdeck_cli::render::RenderArgs;

use crate::ending::{Ending, Kind, output_failed};
use crate::failure::{Failure, Result};

pub(crate) fn run(args: &RenderArgs) -> Result {
    tapdeck_cli::render::render(args).map_err(|e| match e.root_cause().downcast_ref::<io::Error>() {
        Some(io) if io.kind() == io::ErrorKind::BrokenPipe => output_failed(io),
        Some(io) => Failure::new(Kind::of_io(io), format!("{e:#}")),
        None => Failure::io(format!("{e:#}")),
    })?;
    Ok(Ending::Done)
}
