/** The program: everything is in `lib/cli`. The routes are handed over here, so that `lib` never imports them. */
import { main } from "./lib/cli/main.ts";

if (import.meta.main) Deno.exit(await main(Deno.args, () => import("./routes/manifest.ts")));
