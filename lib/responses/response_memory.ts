/** The stored responses of one key, and of one connection. */
import type { LocalResponses, Recall, ResponseOwner } from "../recall/recall.ts";
import type { KeptResponse, RecallLimits } from "../recall/recent_responses.ts";

/** Responses that one client can refer to. */
export interface ResponseMemory {
  /** `null`: responses are not stored. */
  readonly limits: RecallLimits | null;
  /** True if responses with `store: false` are stored too. */
  readonly keepsAll: boolean;
  find(id: string): Promise<KeptResponse | undefined>;
  /** Finds the response with an output item. */
  findByItem(itemId: string): Promise<KeptResponse | undefined>;
  /** The API key, which compactions are encrypted with. */
  readonly secret: string;
  /** Stores a response. @param isStored visible to other connections of the key */
  put(response: KeptResponse, isStored: boolean): Promise<void> | undefined;
}

/** Responses of one key. */
export function keyMemory(recall: Recall, owner: ResponseOwner): ResponseMemory {
  return {
    limits: recall.limits,
    secret: owner.secret,
    keepsAll: false,
    find: (id) => recall.find(owner, id),
    findByItem: (itemId) => recall.findByItem(owner, itemId),
    put: (response, isStored) => isStored ? recall.put(owner, response) : undefined,
  };
}

/** Responses of one connection, and of its key. */
export function connectionMemory(local: LocalResponses, ofKey: ResponseMemory): ResponseMemory {
  return {
    limits: ofKey.limits,
    secret: ofKey.secret,
    keepsAll: true,
    find: async (id) => local.find(id) ?? await ofKey.find(id),
    findByItem: async (itemId) => local.findByItem(itemId) ?? await ofKey.findByItem(itemId),
    put(response, isStored) {
      if (isStored) return ofKey.put(response, true);
      local.put(response);
      return undefined;
    },
  };
}
