#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include <ronda/core/message.hpp>

namespace ronda {

/// A file or a folder that a program is asked to write.
struct Output {
  Message name;                            ///< its option or field: `--json`, `.save`
  std::filesystem::path path;              ///< empty: not requested
  bool folder = false;                     ///< a folder in which the program chooses the files' names
  std::filesystem::path may_replace = {};  ///< an input whose place it may take; empty: none
};

/// Call before anything is written. Throws InputError, with both names, if an output
/// - is a file that is read, or is or lies in a folder that is read: one of `inputs`, or of data_files(). A new file
///   next to files that are read one by one is allowed;
/// - lies in a checkpoint, or has a name that Ronda uses in a folder of checkpoints;
/// - is another output. Two folders may be one; a file may lie in another output's folder.
///
/// Files that exist are compared by device and inode, so a link, a hard link and a relative path are the same file. A
/// pipe or a device may be given to several outputs. Empty paths are skipped.
void require_apart(const std::vector<Output>& outputs, const std::vector<std::filesystem::path>& inputs = {});

}  // namespace ronda
