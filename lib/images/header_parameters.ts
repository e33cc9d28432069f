/** Parameters of a header, as in `form-data; name="image"; filename="a.png"`. */

/** `; name=value`. Within quotes a backslash escapes a quote or itself, and is else a backslash, as in a path. */
const PARAMETER = /;[ \t]*(?:([^\s;="]+)=(?:"((?:[^"\\]|\\["\\]|\\(?!["\\]))*)"|([^\s;"]+))[ \t]*)?/y;

/**
 * The parameters after a header's main value, by their names in lower case.
 * @throws {SyntaxError} where they are malformed, or one comes twice
 */
export function readParameters(header: string): Map<string, string> {
  const parameters = new Map<string, string>();
  for (let at = header.indexOf(";"); at >= 0 && at < header.length;) {
    PARAMETER.lastIndex = at;
    const match = PARAMETER.exec(header);
    if (match === null) throw new SyntaxError("its parameters are malformed");
    const [whole, name, quoted, bare = ""] = match;
    at += whole.length;
    if (name === undefined) continue;
    const key = name.toLowerCase();
    if (parameters.has(key)) throw new SyntaxError("a parameter comes twice");
    parameters.set(key, quoted?.replace(/\\(["\\])/g, "$1") ?? bare);
  }
  return parameters;
}
