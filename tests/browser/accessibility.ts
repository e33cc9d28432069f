/** Checks pages for violations of WCAG 2.2. */
import axe from "axe-core";
import type { Page } from "puppeteer-core";

const LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

/** Violations of WCAG A and AA. The script is evaluated by the browser's debugger, which the page's policy does not bind. */
export async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(`if (globalThis.axe === undefined) { ${axe.source} }`);
  return await page.evaluate(async (levels) => {
    const { axe: own } = globalThis as unknown as { axe: typeof axe };
    const runOnly = { type: "tag" as const, values: levels };
    // Nothing reads the elements that pass: axe collects one for each rule, not all.
    const { violations } = await own.run(document, { runOnly, resultTypes: ["violations"] });
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`)
    );
  }, LEVELS);
}
