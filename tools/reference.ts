/** Writes the generated pages of the documentation from the schemas and tables of the code. `deno task reference` */
import { adminApiPage } from "./reference/admin_api.ts";
import { cliPage } from "./reference/cli.ts";
import { configurationPage } from "./reference/configuration.ts";
import { errorCodesPage, troubleshootingPage } from "./reference/errors.ts";
import { headersPage } from "./reference/headers.ts";
import { logEventsPage } from "./reference/log_events.ts";
import { metricsPage } from "./reference/metrics.ts";

/** Functions that render the generated pages, by the path of the page from the root of the repository. */
export const PAGES: Readonly<Record<string, () => string | Promise<string>>> = {
  "docs/reference/admin-api.md": adminApiPage,
  "docs/reference/cli.md": cliPage,
  "docs/reference/configuration.md": configurationPage,
  "docs/reference/error-codes.md": errorCodesPage,
  "docs/reference/headers.md": headersPage,
  "docs/reference/log-events.md": logEventsPage,
  "docs/reference/metrics.md": metricsPage,
  "docs/troubleshooting.md": troubleshootingPage,
};

if (import.meta.main) {
  for (const [path, render] of Object.entries(PAGES)) await Deno.writeTextFile(path, await render());
}
