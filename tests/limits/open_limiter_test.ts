import { assert, assertEquals } from "@std/assert";
import { HAS_REDIS, startRedis } from "../support/databases.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** A program that counts one request in the Redis of its argument. */
const PROGRAM = `
import { parseLimitsAddress } from "${ROOT}lib/config/address.ts";
import { openLimiter } from "${ROOT}lib/limits/open_limiter.ts";

const limiter = await openLimiter(parseLimitsAddress(Deno.args[0] ?? ""), {
  monotonic: () => performance.now(),
  outage: "closed",
  timeoutMs: 5_000,
  leaseMs: 5_000,
  log: () => {},
});
const limitRequests = [{ name: "key:a", unit: "requests" as const, limit: 1, cost: 1, reportOnly: false }];
console.log((await limiter.take({ id: "r", limitRequests, forMs: 1_000 })).admitted);
await limiter.close();
`;

Deno.test({
  name: "the password of Redis is never printed, even if the environment enables its client's debug log",
  ignore: !HAS_REDIS,
  async fn() {
    await using redis = await startRedis();
    const file = await Deno.makeTempFile({ suffix: ".ts" });
    try {
      await Deno.writeTextFile(file, PROGRAM);
      const url = redis.url.replace("//", "//default:let-me-in-7@");
      const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
        args: ["run", "--quiet", "--no-check", "--config", `${ROOT}deno.json`, "-A", file, url],
        env: { DEBUG: "*", NO_COLOR: "1" },
      }).output();
      const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
      assertEquals([code, out], [0, "true\n"]);
      assert(!`${err}`.includes("let-me-in"), err);
    } finally {
      await Deno.remove(file);
    }
  },
});
