/** Gives ids to calls and results, which Gemini matches by name and order where they have none. */
export class CallMatcher {
  readonly #ids = new Set<string>();
  /** Calls of the last content of the model that have no result yet. */
  #open: { id: string; name: string }[] = [];
  #count = 0;

  /** Begins a content of the model. Calls of earlier ones get no results any more. */
  beginTurn(): void {
    this.#open = [];
  }

  /** Returns the id of a call. */
  begin(name: string, given: string | undefined): string {
    this.#count++;
    let id = given ?? `call_${this.#count}`;
    for (let again = 1; given === undefined && this.#ids.has(id); again++) id = `call_${this.#count}_${again}`;
    this.#ids.add(id);
    this.#open.push({ id, name });
    return id;
  }

  /** Returns the id of the call that a result belongs to; one of no call if there is none. */
  end(name: string, given: string | undefined): string {
    const byId = given === undefined ? -1 : this.#open.findIndex(({ id }) => id === given);
    const at = byId >= 0 ? byId : this.#open.findIndex((call) => call.name === name);
    const [call] = at < 0 ? [] : this.#open.splice(at, 1);
    return call?.id ?? given ?? "";
  }
}
