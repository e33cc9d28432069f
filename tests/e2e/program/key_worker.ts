/** An operator who adds and revokes keys all the time, and records what was acknowledged. */
import { assert, assertEquals } from "@std/assert";

/** The operator's key, and its environment variable. */
export const ADMIN = { env: "ADMIN_KEY", secret: "admin-key-of-the-crash-tests" };

/** A key as the operator knows it. */
interface Known {
  id: string;
  key: string;
  /** Unknown if the gateway stopped before it acknowledged the revocation. */
  state: "good" | "revoked" | "unknown";
}

/** Keys that were acknowledged. */
export class KeyWorker {
  readonly #known: Known[] = [];
  #isOver = false;
  #running = Promise.resolve();

  get count(): number {
    return this.#known.length;
  }

  /** Changes keys until stopped, or until the gateway is unreachable. */
  start(origin: string): void {
    this.#isOver = false;
    this.#running = (async () => {
      while (!this.#isOver) {
        try {
          await this.#change(origin);
        } catch {
          // The gateway is gone.
          return;
        }
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    })();
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  async #change(origin: string): Promise<void> {
    const name = `k${crypto.randomUUID().slice(0, 18)}`;
    const added = await admin(origin, "POST", "keys", { name });
    const { id, key } = await added.json();
    // Not yet: the answer may be one of a store that is unreachable.
    if (added.status !== 201 && added.status !== 200) return;
    const known: Known = { id, key, state: "good" };
    this.#known.push(known);
    if (this.#known.length % 3 !== 0) return;
    known.state = "unknown";
    const revoked = await admin(origin, "DELETE", `keys/${id}`);
    await revoked.body?.cancel();
    if (revoked.ok) known.state = "revoked";
  }

  /** Asserts that the gateway knows the same keys, and accepts or rejects the latest ones accordingly. */
  async compare(origin: string): Promise<void> {
    const listed = await admin(origin, "GET", "keys");
    assertEquals(listed.status, 200);
    const text = await listed.text();
    for (const { id } of this.#known) assert(text.includes(`"${id}"`), `${id} was acknowledged and is gone`);
    for (const { key, state } of this.#known.slice(-8)) {
      const response = await fetch(`${origin}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
      await response.body?.cancel();
      if (state !== "unknown") assertEquals(response.status, state === "good" ? 200 : 401);
    }
  }
}

function admin(origin: string, method: string, path: string, body?: unknown): Promise<Response> {
  return fetch(`${origin}/admin/v1/${path}`, {
    method,
    headers: { authorization: `Bearer ${ADMIN.secret}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(60_000),
  });
}
