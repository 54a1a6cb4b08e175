//! Writes the stubs of the Rust client from a set of file descriptors: `taskyard-codegen SET FOLDER`.

use std::{env, error::Error, fs};

use prost::Message;
use prost_types::FileDescriptorSet;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [set, folder] = arguments.as_slice() else {
        return Err("usage: taskyard-codegen SET FOLDER".into());
    };
    let files = FileDescriptorSet::decode(fs::read(set)?.as_slice())?;
    fs::create_dir_all(folder)?;
    tonic_prost_build::configure().build_server(false).out_dir(folder).compile_fds(files)?;
    Ok(())
}
