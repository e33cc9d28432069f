/** Answers of the admin side: JSON that nobody keeps. */

/** A JSON answer. `value` may be of any type that JSON can say; amounts of money are decimal strings already. */
export function adminAnswer(value: object, status = 200): Response {
  return Response.json(value, { status, headers: { "cache-control": "no-store" } });
}
