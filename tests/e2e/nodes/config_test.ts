import { assert, assertEquals } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { inFolder, type Running, start } from "../../support/program.ts";
import { freshDatabase, HAS_POSTGRES } from "../../support/databases.ts";
import { end } from "./cluster.ts";
import { until } from "../../support/soon.ts";
import { plainModel } from "../../support/plain_model.ts";

const ADMIN_KEY = "admin-key-of-these-nodes";
const CLIENT_KEY = "client-key-0123456789";

function fileOf(prompt: string, more: JsonObject = {}): string {
  return JSON.stringify({
    admin: { key: { env: "ADMIN_KEY" } },
    nodes: { config: "store" },
    keys: [{ name: "client", key: { env: "CLIENT_KEY" } }],
    models: [plainModel({ pricing: { prompt, completion: "0" } })],
    ...more,
  });
}

/** Gateways that are processes of their own, each with its own file. */
class Nodes implements AsyncDisposable {
  readonly #root: string;
  readonly #url: string;
  readonly running: Running[] = [];

  constructor(root: string, url: string) {
    this.#root = root;
    this.#url = url;
  }

  write(number: number, text: string): void {
    Deno.mkdirSync(`${this.#root}/${number}`, { recursive: true });
    Deno.writeTextFileSync(`${this.#root}/${number}/sluice.jsonc`, text);
  }

  async start(number: number, env: Record<string, string> = {}): Promise<Running> {
    const running = await start(["serve"], {
      folder: `${this.#root}/${number}`,
      env: { SLUICE_STORE: this.#url, ADMIN_KEY, CLIENT_KEY, ...env },
    });
    this.running[number] = running;
    return running;
  }

  /** The price that clients see, each time on a new connection. */
  async prices(): Promise<string[]> {
    return await Promise.all(this.running.map(async ({ origin }) => {
      const response = await fetch(`${origin}/v1/models/acme/one`, {
        headers: { authorization: `Bearer ${CLIENT_KEY}`, connection: "close" },
      });
      return (await response.json()).pricing?.prompt;
    }));
  }

  /** Waits until all clients see this price. */
  async untilPriced(price: string): Promise<void> {
    await until(price, async () => (await this.prices()).every((seen) => seen === price));
  }

  async admin(number: number, method: string, path: string): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.running[number]?.origin}/admin/v1/${path}`, {
      method,
      headers: { authorization: `Bearer ${ADMIN_KEY}` },
    });
    return await response.json();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const node of this.running) end(node);
    await Promise.all(this.running.map(({ ended }) => ended));
  }
}

Deno.test({
  name: "three gateways on one database apply a configuration stored by any of them",
  ignore: !HAS_POSTGRES,
  async fn() {
    await using database = await freshDatabase();
    await inFolder(async (root) => {
      await using nodes = new Nodes(root, database.url);
      nodes.write(0, fileOf("0.001"));
      nodes.write(1, fileOf("0.009"));
      nodes.write(2, fileOf("0.001"));
      for (const number of [0, 1, 2]) await nodes.start(number);
      await nodes.untilPriced("0.001");
      assertEquals((await nodes.admin(1, "GET", "config")).source, "store");

      nodes.write(2, fileOf("0.002"));
      await nodes.untilPriced("0.002");
      nodes.write(0, fileOf("0.003"));
      await nodes.untilPriced("0.003");
      // Its file is unchanged: only an explicit reload by an operator restores it.
      const reloaded = await nodes.admin(1, "POST", "reload");
      assertEquals([reloaded.outcome, reloaded.source], ["changed", "store"]);
      await nodes.untilPriced("0.009");
      nodes.running[0]?.kill("SIGHUP");
      await nodes.untilPriced("0.003");

      const [first] = nodes.running;
      assert(first !== undefined);
      end(first);
      await first.ended;
      nodes.write(0, fileOf("0.007"));
      await nodes.start(0);
      assertEquals(await nodes.prices(), ["0.003", "0.003", "0.003"]);
      const states = await Promise.all([0, 1, 2].map((number) => nodes.admin(number, "GET", "config")));
      const [one] = states;
      assertEquals(states.map(({ shared }) => shared), [one?.shared, one?.shared, one?.shared]);
    });
  },
});
