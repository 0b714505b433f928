/** Where things are, seen from the compiled tests in `build/test`. */

import { fileURLToPath } from "node:url";

/** The folder of this package. */
export const PACKAGE = fileURLToPath(new URL("../../../", import.meta.url));

/** The folder of the repository. */
export const REPOSITORY = fileURLToPath(new URL("../../../../../", import.meta.url));
