/** Which addresses the HTTP/1.1 client of our own can serve. */

/** Variables that name a proxy for the addresses of a scheme. */
const PROXIES: Readonly<Record<string, readonly string[]>> = {
  "http:": ["HTTP_PROXY", "ALL_PROXY"],
  "https:": ["HTTPS_PROXY", "ALL_PROXY"],
};

/**
 * False where a request must go over `fetch`: through a proxy that the environment names, even if it may exempt this host,
 * and to addresses that are not plain HTTP ones.
 */
export function canServe(url: string, env: (name: string) => string | undefined): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, username, password } = new URL(url);
  const proxies = PROXIES[protocol];
  if (proxies === undefined || hostname === "" || username !== "" || password !== "") return false;
  return proxies.every((name) => (env(name) ?? "") === "" && (env(name.toLowerCase()) ?? "") === "");
}
