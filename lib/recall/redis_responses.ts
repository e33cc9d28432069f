/** Responses shared by nodes in Redis, each encrypted with a key derived from its client's API key. */
import { Buffer } from "node:buffer";
import { Redis } from "ioredis";
import { GatewayError } from "../errors.ts";
import type { Log } from "../log_events.ts";
import type { Secret } from "../secret.ts";
import type { ResponseOwner, SharedResponses } from "./recall.ts";
import type { KeptResponse } from "./recent_responses.ts";
import { openResponse, sealResponse } from "./seal_response.ts";

const PREFIX = "sluice:recall";

/** Interval of log lines about an unreachable Redis, in milliseconds. */
const LOG_MS = 60_000;

/** Connect timeout, in milliseconds. */
const CONNECT_MS = 2_000;

/** Time for the server to close the socket before it is destroyed, in milliseconds. */
const HANG_UP_MS = 100;

/** Longest reconnect delay, in milliseconds. */
const RECONNECT_MS = 5_000;

/** Longest wait for Redis, in milliseconds: a slow answer keeps the conversation, a missing one ends it. */
const COMMAND_MS = 2_000;

/** Time until a client should repeat a request that Redis did not answer, in milliseconds. */
const RETRY_MS = 1_000;

/** Shared responses in Redis. */
export class RedisResponses implements SharedResponses {
  readonly #redis: Redis;
  readonly #log: Log;
  readonly #ended: Promise<void>;
  #loggedAt = -Infinity;

  constructor(url: Secret, log: Log) {
    this.#log = log;
    this.#redis = new Redis(url.reveal(), {
      lazyConnect: true,
      connectTimeout: CONNECT_MS,
      disconnectTimeout: HANG_UP_MS,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      commandTimeout: COMMAND_MS,
      retryStrategy: (times) => Math.min(times * 100, RECONNECT_MS),
      protocol: 2,
      disableClientInfo: true,
      connectionName: "sluice-recall",
    });
    this.#ended = new Promise((resolve) => this.#redis.once("end", resolve));
    this.#redis.on("error", (error: unknown) => this.#failed(error));
  }

  /** Connects. Resolves even on failure: the client reconnects by itself. */
  async connect(): Promise<void> {
    await this.#redis.connect().catch((error: unknown) => this.#failed(error));
  }

  async put(owner: ResponseOwner, response: KeptResponse, forMs: number): Promise<void> {
    const key = responseKey(owner, response.id);
    try {
      const sealed = Buffer.from(await sealResponse(owner.secret, { key, response }));
      const commands = this.#redis.pipeline().set(key, sealed, "PX", forMs);
      for (const { id } of response.items) commands.set(itemKey(owner, id), response.id, "PX", forMs);
      const results = await commands.exec() ?? [];
      for (const [error] of results) if (error !== null) throw error;
    } catch (error) {
      this.#failed(error);
    }
  }

  async find(owner: ResponseOwner, id: string, forMs: number): Promise<KeptResponse | undefined> {
    const key = responseKey(owner, id);
    const sealed = await this.#read(() => this.#redis.getexBuffer(key, "PX", forMs));
    return sealed === null ? undefined : await openResponse(owner.secret, { key, sealed: new Uint8Array(sealed) });
  }

  async findByItem(owner: ResponseOwner, itemId: string, forMs: number): Promise<KeptResponse | undefined> {
    const id = await this.#read(() => this.#redis.getex(itemKey(owner, itemId), "PX", forMs));
    return id === null ? undefined : await this.find(owner, id, forMs);
  }

  drop(keyId: string, { id, items }: KeptResponse): void {
    const keys = [responseKey({ keyId }, id), ...items.map((item) => itemKey({ keyId }, item.id))];
    this.#redis.unlink(...keys).catch((error: unknown) => this.#failed(error));
  }

  async close(): Promise<void> {
    const wasReady = this.#redis.status === "ready";
    this.#redis.disconnect();
    // Without a connection there is no such event, only the client's timer.
    await (wasReady ? this.#ended : new Promise((resolve) => setTimeout(resolve, HANG_UP_MS)));
  }

  async #read<Value>(command: () => Promise<Value>): Promise<Value> {
    try {
      return await command();
    } catch (error) {
      this.#failed(error);
      throw new GatewayError("overloaded", "Cannot look up earlier responses at this time: try again", {
        retryAfterMs: RETRY_MS,
        refusal: { outage: "limits_store" },
        cause: error,
      });
    }
  }

  #failed(error: unknown): void {
    const now = performance.now();
    if (now - this.#loggedAt < LOG_MS) return;
    this.#loggedAt = now;
    // The message may contain the address with its password.
    const cause = error instanceof Error ? "code" in error ? String(error.code) : error.name : "unknown";
    this.#log({ level: "warn", event: "recall_not_shared", cause });
  }
}

function responseKey({ keyId }: Pick<ResponseOwner, "keyId">, id: string): string {
  return `${PREFIX}:${keyId}:response:${id}`;
}

function itemKey({ keyId }: Pick<ResponseOwner, "keyId">, id: string): string {
  return `${PREFIX}:${keyId}:item:${id}`;
}
