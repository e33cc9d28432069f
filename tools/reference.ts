/** Writes docs/reference/ from the schemas and tables of the code. */
import { configurationPage } from "./reference/configuration.ts";
import { logEventsPage } from "./reference/log_events.ts";

/** The generated pages: how each is made, by its path from the root of the repository. */
export const PAGES: Readonly<Record<string, () => string>> = {
  "docs/reference/configuration.md": configurationPage,
  "docs/reference/log-events.md": logEventsPage,
};

if (import.meta.main) {
  for (const [path, render] of Object.entries(PAGES)) Deno.writeTextFileSync(path, render());
}
