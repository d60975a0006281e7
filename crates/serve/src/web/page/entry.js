// Logs in: exchanges a token for a cookie that scripts cannot read. The token stays in the memory
// of this script and nowhere else, so that a restarted server, which has forgotten the cookie, can
// be shown it again.

let known = null, asking = null;

const hand = (token) => fetch("/login", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ token }) });

// Logs in, and remembers the token if the server accepts it.
export const logIn = async (token) => {
  const answer = await hand(token);
  if (answer.ok) known = token;
  return answer;
};

// Logs in once more with the remembered token; returns whether the server accepted it. Callers at
// the same time share one request. Fails when the server is away.
export const again = () => asking ??= repeat().finally(() => { asking = null; });

const repeat = async () => {
  if (known === null) return false;
  const { ok, status } = await hand(known);
  if (!ok && status !== 403) throw new Error("not now");
  if (!ok) known = null;
  return ok;
};
