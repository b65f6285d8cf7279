#include "pipeline/file_list.h"
