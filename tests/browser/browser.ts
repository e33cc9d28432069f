/** Starts headless Chromium, with pages that record everything that should not happen. */
import { type Browser, type BrowserContext, launch, type Page } from "puppeteer-core";
import { findProgram, skipIf } from "../support/skip.ts";
import { type RunningDemo, startDemo } from "./demo.ts";

const CHROMIUM = findProgram("chromium") ?? findProgram("google-chrome");

/** True without a browser, for `ignore`. */
export const NO_BROWSER: boolean = skipIf(CHROMIUM === undefined, "chromium is not installed");

/** Longest wait for anything in a page, in milliseconds. */
const PATIENCE_MS = 60_000;

/** A browser at the console of a demo. */
export interface ConsoleBrowser extends AsyncDisposable {
  readonly demo: RunningDemo;
  /** Address of the console. */
  readonly url: string;
  /** Cookies of an operator with the admin key. */
  readonly operator: BrowserContext;
  /** Opens a page and collects its errors. Without a context: without a session. */
  open(context?: BrowserContext): Promise<WatchedPage>;
}

/** A page, and its problems so far: errors, failed requests, requests to other hosts, dialogs. */
export interface WatchedPage extends AsyncDisposable {
  readonly page: Page;
  readonly faults: string[];
}

/** Starts the demo and the browser, and signs in. */
export async function startBrowser(): Promise<ConsoleBrowser> {
  await using resources = new AsyncDisposableStack();
  const [demo, browser] = await Promise.all([startDemo(), launchBrowser()]);
  resources.use(demo);
  resources.defer(() => browser.close());
  const url = `${demo.origin}/admin/console`;
  const operator = await browser.createBrowserContext();
  const open = async (context?: BrowserContext) => {
    const own = context === undefined ? await browser.createBrowserContext() : undefined;
    const page = await (context ?? own ?? operator).newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    return {
      page,
      faults: watchPage(page, demo.origin),
      [Symbol.asyncDispose]: async () => await (own ?? page).close(),
    };
  };
  {
    await using signedIn = await open(operator);
    await signIn(signedIn.page, { url, key: demo.adminKey });
  }
  const own = resources.move();
  return { demo, url, operator, open, [Symbol.asyncDispose]: () => own.disposeAsync() };
}

function launchBrowser(): Promise<Browser> {
  return launch({
    executablePath: CHROMIUM ?? "",
    args: [
      // Containers run tests as root and have a small /dev/shm.
      ...["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
      // One process shows all pages of the console, and none is started for pages to come: a process takes half a second
      // of CPU time.
      ...["--process-per-site", "--renderer-process-limit=1", "--disable-features=SpareRendererForSitePerProcess"],
    ],
  });
}

/** Fills in the form of the sign-in page. */
export async function signIn(page: Page, { url, key }: { url: string; key: string }): Promise<void> {
  await page.goto(`${url}/sign-in`);
  await page.type("input[name=key]", key);
  await submit(page, "main form button");
}

/** Presses a button, or follows a link, and waits for the page that it leads to. */
export async function submit(page: Page, selector: string): Promise<void> {
  await Promise.all([page.waitForNavigation(), page.click(selector)]);
}

/** The text that a person sees on the page. */
export function textOf(page: Page): Promise<string> {
  return page.$eval("main", (main) => (main as HTMLElement).innerText);
}

function watchPage(page: Page, origin: string): string[] {
  const faults: string[] = [];
  page.on("console", (message) => {
    // Failed loads are reported below.
    const isLoad = message.text().startsWith("Failed to load resource");
    if (["error", "warn"].includes(message.type()) && !isLoad) faults.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`error: ${error}`));
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const { protocol, origin: requestOrigin } = new URL(request.url());
    // The browser's own icons, as in a field for a month, have data: addresses.
    if (requestOrigin !== origin && protocol !== "data:") faults.push(`foreign request: ${request.url()}`);
  });
  page.on("requestfailed", (request) => {
    const { errorText = "" } = request.failure() ?? {};
    // A script of the page aborts its streams, and Chromium reports that even for streams that were read to their end.
    const isEnded = errorText === "net::ERR_ABORTED" && ["fetch", "eventsource"].includes(request.resourceType());
    if (!isEnded) faults.push(`failed request: ${request.url()} ${errorText}`);
  });
  return faults;
}
