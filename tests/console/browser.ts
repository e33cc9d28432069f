/** A browser as far as forms and cookies go: it keeps the session cookie and follows redirects. */
import type { JsonObject } from "../../lib/json/mod.ts";
import { ADMIN_KEY, type KeyedGateway, startKeyed } from "../support/keyed_gateway.ts";

/** A page that was loaded. */
export interface LoadedPage {
  status: number;
  path: string;
  html: string;
  headers: Headers;
}

/** Starts a gateway with an admin side. */
export function startConsole(file: JsonObject = {}): KeyedGateway {
  return startKeyed({ admin: { key: { env: "ADMIN_KEY" }, viewer_key: { env: "VIEWER_KEY" } }, ...file });
}

/** A browser at the console of a gateway. */
export class Browser {
  cookie = "";
  readonly #origin: string;
  readonly #client: Deno.HttpClient | undefined;

  /** @param client absent: the runtime's usual one */
  constructor({ adminUrl }: Pick<KeyedGateway, "adminUrl">, client?: Deno.HttpClient) {
    this.#origin = adminUrl;
    this.#client = client;
  }

  /** Loads a page of the console. */
  get(path = ""): Promise<LoadedPage> {
    return this.#load(path, {});
  }

  /** Sends a form as this browser would, with the hidden fields of the page that it is on. */
  async post(path: string, fields: Record<string, string>, headers: HeadersInit = {}): Promise<LoadedPage> {
    const { html } = this.cookie === "" ? { html: "" } : await this.get(path.startsWith("/keys/") ? path : "");
    const version = /name="version" value="([^"]+)"/.exec(html)?.[1]?.replaceAll("&quot;", '"') ?? "";
    return await this.#load(path, {
      method: "POST",
      body: new URLSearchParams({ csrf: csrfOf(html), version, ...fields }),
      headers: { origin: this.#origin, ...headers },
    });
  }

  /** Signs in. */
  signIn(key: string): Promise<LoadedPage> {
    return this.post("/sign-in", { key });
  }

  async #load(path: string, init: RequestInit): Promise<LoadedPage> {
    const response = await fetch(`${this.#origin}/admin/console${path}`, {
      ...init,
      headers: { ...init.headers, ...(this.cookie !== "" && { cookie: this.cookie }) },
      redirect: "manual",
      ...(this.#client !== undefined && { client: this.#client }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [pair = ""] = cookie.split(";");
      this.cookie = pair.endsWith("=") ? "" : pair;
    }
    const { status, headers } = response;
    const html = await response.text();
    const location = headers.get("location");
    if (location === null) return { status, path, html, headers };
    return await this.#load(location.replace("/admin/console", ""), {});
  }
}

/** The token in the forms of a page. */
export function csrfOf(html: string): string {
  return /name="csrf" value="([^"]+)"/.exec(html)?.[1] ?? "";
}

/** A browser that has signed in, as an operator or with another key. */
export async function signedIn(gateway: Pick<KeyedGateway, "adminUrl">, key: string = ADMIN_KEY): Promise<Browser> {
  const browser = new Browser(gateway);
  await browser.signIn(key);
  return browser;
}
