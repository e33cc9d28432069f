import { assertEquals } from "@std/assert";
import { proxyFor } from "../../lib/upstreams/proxies.ts";

Deno.test("proxyFor() reads the environment like fetch", () => {
  const P = "http://p";
  // Each row was tried against `fetch`, on Deno 2.4.2 and 2.9.6.
  const cases: [Record<string, string>, string, string | undefined][] = [
    [{}, "http://a.test/", undefined],
    [{ HTTP_PROXY: P }, "http://a.test/", P],
    [{ http_proxy: P }, "http://a.test/", P],
    [{ HTTP_PROXY: "", http_proxy: P }, "http://a.test/", P],
    [{ HTTP_PROXY: P, http_proxy: "http://q" }, "http://a.test/", P],
    [{ HTTP_PROXY: P }, "https://a.test/", undefined],
    [{ HTTPS_PROXY: P }, "https://a.test/", P],
    [{ HTTPS_PROXY: P }, "http://a.test/", undefined],
    [{ ALL_PROXY: P }, "https://a.test/", P],
    [{ ALL_PROXY: P, HTTP_PROXY: "http://q" }, "http://a.test/", P],
    [{ HTTP_PROXY: P }, "http://localhost:81/", P],
    [{ HTTP_PROXY: P }, "http://127.0.0.1:81/", P],
    [{ ALL_PROXY: P, NO_PROXY: "a.test" }, "http://a.test/", undefined],
    [{ ALL_PROXY: P, NO_PROXY: "A.test" }, "http://a.test/", P],
    [{ ALL_PROXY: P, NO_PROXY: "a.test" }, "https://b.a.test/", undefined],
    [{ ALL_PROXY: P, NO_PROXY: ".a.test" }, "https://b.a.test/", undefined],
    [{ ALL_PROXY: P, NO_PROXY: ".a.test" }, "https://a.test/", undefined],
    [{ ALL_PROXY: P, NO_PROXY: "..a.test" }, "https://a.test/", P],
    [{ ALL_PROXY: P, NO_PROXY: "a.test" }, "https://xa.test/", P],
    [{ ALL_PROXY: P, NO_PROXY: "a.test:80" }, "http://a.test:80/", P],
    [{ ALL_PROXY: P, NO_PROXY: "*.test" }, "http://a.test/", P],
    [{ ALL_PROXY: P, NO_PROXY: "*" }, "http://a.test/", undefined],
    [{ ALL_PROXY: P, NO_PROXY: "*" }, "http://192.0.2.1/", P],
    [{ ALL_PROXY: P, NO_PROXY: "" }, "http://a.test/", P],
    [{ ALL_PROXY: P, NO_PROXY: "x, 10.0.0.0/8" }, "http://10.1.2.3:9/", undefined],
    [{ ALL_PROXY: P, NO_PROXY: "10.0.0.0/8" }, "http://11.1.2.3:9/", P],
    [{ ALL_PROXY: P, NO_PROXY: "10.0.0.0/33" }, "http://10.0.0.1:9/", P],
    [{ ALL_PROXY: P, NO_PROXY: "0.0.1" }, "http://10.0.0.1:9/", P],
    [{ ALL_PROXY: P, NO_PROXY: "10.0.0.1" }, "http://10.0.0.1:9/", undefined],
    [{ ALL_PROXY: P, NO_PROXY: "10.0.0.1:9" }, "http://10.0.0.1:9/", P],
    [{ ALL_PROXY: P, NO_PROXY: "fd00::/8" }, "http://[fd00::1]:9/", undefined],
    [{ ALL_PROXY: P, NO_PROXY: "fe00::/8" }, "http://[fd00::1]:9/", P],
    [{ ALL_PROXY: P, NO_PROXY: "0:0:0:0:0:0:0:1" }, "http://[::1]:9/", undefined],
    [{ ALL_PROXY: P, NO_PROXY: "[::1]" }, "http://[::1]:9/", P],
    [{ ALL_PROXY: P, NO_PROXY: "127.0.0.0/8" }, "http://[::ffff:127.0.0.1]:9/", P],
    [{ ALL_PROXY: P, no_proxy: "a.test" }, "http://a.test/", undefined],
    [{ ALL_PROXY: P, NO_PROXY: "b.test", no_proxy: "a.test" }, "http://a.test/", P],
    [{ ALL_PROXY: P, NO_PROXY: "", no_proxy: "a.test" }, "http://a.test/", P],
  ];
  for (const [env, url, proxy] of cases) {
    assertEquals(proxyFor(url, (name) => env[name]), proxy, `${url} ${JSON.stringify(env)}`);
  }
});
