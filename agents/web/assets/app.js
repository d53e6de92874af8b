// What the pages do themselves: log in by the link, count down, and say when they are not
// live. Everything else is htmx.
(() => {
  const root = document.documentElement, patience = 5000, period = 5000;
  root.classList.add('js');

  const login = document.querySelector('form#login');
  const enter = () => {
    if (login && location.hash.length > 1) {
      login.elements.token.value = location.hash.slice(1);
      history.replaceState(null, '', location.pathname); // the token is nobody's business
      login.submit();
    }
  };
  enter();
  addEventListener('hashchange', enter);

  const stateLine = document.getElementById('link-state');
  const say = text => { if (stateLine) { stateLine.hidden = !text; if (stateLine.textContent !== text) stateLine.textContent = text; } };

  // Counting begins when the page came, so a wrong clock does no harm.
  const ends = new WeakMap();
  const count = () => document.querySelectorAll('[data-left]').forEach(e => {
    const known = ends.get(e);
    if (!known || known.left !== e.dataset.left) ends.set(e, {left: e.dataset.left, end: performance.now() + Number(e.dataset.left)});
    const s = Math.max(0, Math.ceil((ends.get(e).end - performance.now()) / 1000));
    e.textContent = s > 0 ? '(' + (s >= 60 ? Math.floor(s / 60) + ' min ' : '') + s % 60 + ' s left)' : '(now)';
  });
  count();
  setInterval(count, 1000);
  document.addEventListener('htmx:after:swap', count);

  // A form is sent once.
  document.addEventListener('submit', e => {
    if (e.defaultPrevented) return;
    if (e.target.dataset.sent) { e.preventDefault(); return; }
    e.target.dataset.sent = '1';
  });
  addEventListener('pageshow', () => document.querySelectorAll('form[data-sent]').forEach(f => delete f.dataset.sent));

  const events = document.getElementById('events');
  if (!events) return;
  let heard = false, away = false, polling = 0;
  const stopPolling = () => { clearInterval(polling); polling = 0; };
  const poll = () => { if (!document.hidden) htmx.trigger(document.body, 'poll'); };
  const live = () => {
    heard = true;
    stopPolling();
    say(away ? awayText : '');
  };
  const goesOn = document.querySelector('#live[hx-get]') ? ' This page goes on by itself when it is back.' : '';
  const awayText = 'The agent does not answer.' + goesOn;
  const lost = () => {
    if (heard || polling || document.hidden) return;
    say('Live news do not arrive, perhaps because a proxy keeps them back. The page asks every ' + period / 1000 + ' s instead.');
    polling = setInterval(poll, period);
  };
  let timer = setTimeout(lost, patience);
  const wait = () => { heard = false; clearTimeout(timer); timer = setTimeout(lost, patience); };
  for (const kind of ['hello', 'beat', 'fresh', 'change']) document.body.addEventListener(kind, live);
  document.body.addEventListener('away', () => { away = true; live(); });
  document.body.addEventListener('back', () => { away = false; live(); });
  document.addEventListener('htmx:sse:error', wait);
  document.addEventListener('htmx:sse:before:connection', wait);
  document.addEventListener('visibilitychange', () => { if (!document.hidden) wait(); });
})();
