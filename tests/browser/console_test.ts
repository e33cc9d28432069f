/** All tests of the console in a browser: the demo and the browser take seconds to start. */
import { NO_BROWSER, startBrowser } from "./browser.ts";
import { OPERATOR_TESTS } from "./operator.ts";
import { PAGE_TESTS } from "./pages.ts";
import { SCRIPT_TESTS } from "./scripts.ts";

Deno.test({ name: "the console in a browser", ignore: NO_BROWSER }, async (t) => {
  await using console = await startBrowser();
  for (const [name, test] of Object.entries({ ...PAGE_TESTS, ...SCRIPT_TESTS, ...OPERATOR_TESTS })) {
    await t.step(name, () => test(console));
  }
});
