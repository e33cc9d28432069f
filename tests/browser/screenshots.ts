/**
 * Makes the screenshots of the documentation from the demo: `deno task screenshots`. Each is a PNG of at most 150 KB,
 * light and dark; `docs/images/console-overview.png` is that of the README.
 */
import type { Page } from "puppeteer-core";
import { startBrowser, submit } from "./browser.ts";

const FOLDER = `${import.meta.dirname}/../../docs/images`;
const MAX_BYTES = 150_000;

/** Pages by the names of their files, and what is done there first. */
const SHOTS: Readonly<Record<string, { path: string; height: number; act?: (page: Page) => Promise<void> }>> = {
  overview: { path: "?period=30d", height: 1060 },
  request: {
    path: "/requests?model=open/kestrel-70b&upstream=meridian",
    height: 1200,
    act: (page) => submit(page, "main table a"),
  },
  usage: { path: "/usage?by=group&then=model", height: 900 },
  playground: {
    path: "/playground?model=borealis/atlas-2-mini&other=meridian/lyra-3-small",
    height: 1050,
    act: askInPlayground,
  },
};

await using console = await startBrowser();
await using tab = await console.open(console.operator);
const { page } = tab;
await Deno.mkdir(FOLDER, { recursive: true });
for (const [name, { path, height, act }] of Object.entries(SHOTS)) {
  await page.setViewport({ width: 1280, height });
  await page.goto(console.url + path);
  await act?.(page);
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    const image = await page.screenshot();
    if (image.length > MAX_BYTES) throw new RangeError(`The screenshot of ${path} has ${image.length} bytes`);
    await Deno.writeFile(`${FOLDER}/console-${name}${scheme === "dark" ? "-dark" : ""}.png`, image);
  }
}

/** Sends a prompt to two models side by side, and waits for both answers. */
async function askInPlayground(page: Page): Promise<void> {
  await page.type("[name=prompt]", "Why is the sky blue?");
  await page.click("main form [value=send]");
  await page.waitForFunction(`document.querySelectorAll("#results .cards").length === 2`);
}
