// SamplingParams is part of the installed API; inside, it belongs to core.
#pragma once

#include "minisgl/sampling_params.h"
