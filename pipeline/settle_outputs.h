// Outputs that get into each other's way, or are there already.
#pragma once

#include "pipeline/file_list.h"

namespace tessera {

// Leaves of `files` those that are to be made, counts the others (`results`, `up_to_date`), and
// sets `output_folders`. Throws Error where outputs cannot come out right, as ListFiles does.
void SettleOutputs(Existing existing, FileList& list);

}  // namespace tessera
