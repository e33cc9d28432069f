/** Checks pages for violations of WCAG 2.2. */
import axe from "axe-core";
import type { Page } from "puppeteer-core";

const LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

/** The rules of axe that depend on colors or on the width of the page. */
const RULES_OF_VIEWS = ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"];

/**
 * Violations of WCAG A and AA, or of the rules that depend on the view of the page alone. The script is evaluated by the
 * browser's debugger, which the page's policy does not bind.
 */
export async function violationsOf(page: Page, { ofView = false } = {}): Promise<string[]> {
  await page.evaluate(`if (globalThis.axe === undefined) { ${axe.source} }`);
  const runOnly = ofView ? { type: "rule", values: RULES_OF_VIEWS } : { type: "tag", values: LEVELS };
  return await page.evaluate(async (runOnly) => {
    const { axe: own } = globalThis as unknown as { axe: typeof axe };
    // Nothing reads the elements that pass: axe collects one for each rule, not all.
    const { violations } = await own.run(document, { runOnly, resultTypes: ["violations"] } as axe.RunOptions);
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`)
    );
  }, runOnly);
}
