/**
 * Makes the screenshots of the documentation from the demo: `deno task screenshots`. Each is a PNG of at most 150 KB,
 * light and dark; `docs/images/console-overview.png` is that of the README.
 */
import { startBrowser } from "./browser.ts";

const FOLDER = `${import.meta.dirname}/../../docs/images`;
const MOST_BYTES = 150_000;

/** Pages by the names of their files, and the selector of a link to follow first. */
const SHOTS: Readonly<Record<string, { path: string; link?: string; height?: number }>> = {
  overview: { path: "?period=30d", height: 1000 },
  request: { path: "/requests?model=open/kestrel-70b&upstream=meridian", link: "main table a", height: 1200 },
  usage: { path: "/usage?by=group&then=model" },
};

await using console = await startBrowser();
await using tab = await console.open(console.operator);
const { page } = tab;
await Deno.mkdir(FOLDER, { recursive: true });
for (const [name, { path, link, height = 800 }] of Object.entries(SHOTS)) {
  await page.setViewport({ width: 1280, height });
  await page.goto(console.url + path);
  if (link !== undefined) await Promise.all([page.waitForNavigation(), page.click(link)]);
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMediaFeatures([
      { name: "prefers-color-scheme", value: scheme },
      { name: "prefers-reduced-motion", value: "reduce" },
    ]);
    const image = await page.screenshot();
    if (image.length > MOST_BYTES) throw new RangeError(`The screenshot of ${path} has ${image.length} bytes`);
    await Deno.writeFile(`${FOLDER}/console-${name}${scheme === "dark" ? "-dark" : ""}.png`, image);
  }
}
