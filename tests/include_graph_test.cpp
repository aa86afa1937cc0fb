// The rooms of src/ and who may include whom: every `#include "ROOM/…"` is compared with what CMake
// links (USES) and with the table of docs/architecture.md, and the graph has no cycle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "utils/files.h"

namespace minisgl {
namespace {

using RoomSet = std::set<std::string>;

// Rooms from the bottom up, with what each may include besides itself; utils, tensor and core are
// free to every room that stands above them.
const std::vector<std::pair<std::string, RoomSet>> kMayInclude = {
    {"utils", {}},
    {"tensor", {"utils"}},
    {"tokenizer", {"utils"}},
    {"grammar", {"utils"}},
    {"kernel", {"tensor", "utils"}},
    {"distributed", {"tensor", "utils"}},
    {"core", {"tensor", "utils"}},
    {"loader", {"core", "tensor", "utils"}},
    {"kvcache", {"core", "kernel", "tensor", "utils"}},
    {"message", {"core", "tensor", "utils"}},
    {"attention", {"core", "kvcache", "kernel", "tensor", "utils"}},
    {"layers", {"core", "attention", "kernel", "distributed", "loader", "tensor", "utils"}},
    {"models", {"layers", "loader", "core", "tensor", "utils"}},
    {"engine",
     {"models", "attention", "kvcache", "kernel", "distributed", "loader", "grammar", "core",
      "tensor", "utils"}},
    {"scheduler", {"engine", "kvcache", "message", "core", "tensor", "utils"}},
    {"llm", {"scheduler", "engine", "loader", "tokenizer", "message", "core", "tensor", "utils"}},
    {"server", {"llm", "tokenizer", "grammar", "message", "core", "tensor", "utils"}},
};

// Where a room may know only another one's front header.
const std::map<std::pair<std::string, std::string>, std::string> kOnlyHeader = {
    {{"layers", "attention"}, "attention/backend.h"},
    {{"layers", "loader"}, "loader/weights.h"},
    {{"llm", "loader"}, "loader/hub.h"},
};

struct Include {
  std::string file;    // relative to src/
  std::string room;    // of the file
  std::string target;  // "attention/backend.h"
};

bool is_source(const std::filesystem::path& path) {
  static const RoomSet kExtensions = {".h", ".cpp", ".inl", ".cu", ".cuh"};
  return kExtensions.contains(path.extension().string());
}

std::vector<std::string> quoted_includes(const std::string& path) {
  static const std::regex kInclude("^[ \t]*#[ \t]*include[ \t]*\"([^\"]+)\"");
  std::vector<std::string> found;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, kInclude)) found.push_back(match[1]);
  }
  return found;
}

const std::vector<Include>& includes_of_src() {
  static const std::vector<Include> all = [] {
    const std::filesystem::path src = MINISGL_SOURCE_DIR "/src";
    std::vector<Include> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(src)) {
      if (!entry.is_regular_file() || !is_source(entry.path())) continue;
      const auto file = std::filesystem::relative(entry.path(), src);
      for (std::string& target : quoted_includes(entry.path().string())) {
        found.push_back({file.string(), file.begin()->string(), std::move(target)});
      }
    }
    return found;
  }();
  return all;
}

std::string room_of(const std::string& target) { return target.substr(0, target.find('/')); }

// Room -> USES, as the build has them.
std::map<std::string, RoomSet> linked_rooms() {
  std::map<std::string, RoomSet> rooms;
  std::istringstream lines(read_file(MINISGL_ROOM_LIST));
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    RoomSet& uses = rooms[line.substr(0, colon)];
    std::istringstream words(line.substr(colon + 1));
    for (std::string word; words >> word;) uses.insert(word);
  }
  return rooms;
}

// USES reach through: what a used room links is linked too.
RoomSet closure(const std::map<std::string, RoomSet>& rooms, const std::string& room) {
  RoomSet seen;
  std::vector<std::string> todo = {room};
  while (!todo.empty()) {
    const std::string next = todo.back();
    todo.pop_back();
    const auto found = rooms.find(next);
    if (found == rooms.end()) continue;
    for (const std::string& used : found->second) {
      if (seen.insert(used).second) todo.push_back(used);
    }
  }
  return seen;
}

const RoomSet* allowed(const std::string& room) {
  for (const auto& [name, may_include] : kMayInclude) {
    if (name == room) return &may_include;
  }
  return nullptr;
}

TEST(IncludeGraph, SeesTheSources) {
  EXPECT_GT(includes_of_src().size(), 50u);
  EXPECT_TRUE(linked_rooms().contains("utils"));
  EXPECT_THAT(linked_rooms()["tensor"], testing::ElementsAre("utils"));
}

TEST(IncludeGraph, EveryQuotedIncludeNamesItsRoom) {
  for (const Include& include : includes_of_src()) {
    EXPECT_NE(include.target.find('/'), std::string::npos)
        << "src/" << include.file << " includes \"" << include.target
        << "\": write the path from src/";
  }
}

TEST(IncludeGraph, RoomsIncludeOnlyWhatTheTableAllows) {
  for (const Include& include : includes_of_src()) {
    const std::string target_room = room_of(include.target);
    if (include.room == "cli" || target_room == include.room || target_room == "minisgl") continue;
    const RoomSet* may_include = allowed(include.room);
    ASSERT_NE(may_include, nullptr) << "src/" << include.file << ": a room missing in the table";
    EXPECT_TRUE(may_include->contains(target_room))
        << "src/" << include.file << " includes \"" << include.target << "\": " << include.room
        << " may not know " << target_room;
    const auto only = kOnlyHeader.find({include.room, target_room});
    if (only != kOnlyHeader.end()) {
      EXPECT_EQ(include.target, only->second)
          << "src/" << include.file << ": " << include.room << " may know only this header";
    }
  }
}

TEST(IncludeGraph, RoomsIncludeOnlyWhatTheyLink) {
  const auto rooms = linked_rooms();
  for (const Include& include : includes_of_src()) {
    const std::string target_room = room_of(include.target);
    if (target_room == include.room || target_room == "minisgl" || !rooms.contains(include.room)) {
      continue;
    }
    EXPECT_TRUE(closure(rooms, include.room).contains(target_room))
        << "src/" << include.file << " includes \"" << include.target << "\", but " << include.room
        << " does not list " << target_room << " in its USES";
  }
}

TEST(IncludeGraph, LinkedRoomsAreThoseOfTheTable) {
  for (const auto& [room, uses] : linked_rooms()) {
    if (room == "cli") continue;
    const RoomSet* may_include = allowed(room);
    ASSERT_NE(may_include, nullptr) << room << " is missing in the table";
    for (const std::string& used : uses) {
      EXPECT_TRUE(may_include->contains(used)) << room << " links " << used;
    }
  }
}

TEST(IncludeGraph, HasNoCycle) {
  const auto rooms = linked_rooms();
  for (const auto& [room, uses] : rooms) {
    EXPECT_FALSE(closure(rooms, room).contains(room)) << room << " reaches itself";
  }
  RoomSet below;
  for (const auto& [room, may_include] : kMayInclude) {
    EXPECT_TRUE(std::includes(below.begin(), below.end(), may_include.begin(), may_include.end()))
        << room << " may include a room that does not stand below it";
    below.insert(room);
  }
}

TEST(IncludeGraph, InstalledHeadersNeedOnlyEachOther) {
  for (const auto& entry :
       std::filesystem::directory_iterator(MINISGL_SOURCE_DIR "/include/minisgl")) {
    for (const std::string& target : quoted_includes(entry.path().string())) {
      EXPECT_EQ(room_of(target), "minisgl") << entry.path() << " includes \"" << target << "\"";
    }
  }
}

}  // namespace
}  // namespace minisgl
