// @ts-check
/* The demonstrations of 'How it works' and 'Security', as one script: it costs less than several. */

import "../demonstration/plane.js";
import "../demonstration/race.js";
import "../demonstration/step.js";
