// @ts-check
/* The demonstrations of 'How it works' and 'Security', as one script: it costs less than two. */

import "../demonstration/plane.js";
import "../demonstration/race.js";
