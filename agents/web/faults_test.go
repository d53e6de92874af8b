package web_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// foreignHosts asks every TCP port on which any process of the market listens as a page whose
// name is rebound does.
func foreignHosts(t *testing.T, m *market) {
	base, _ := m.pages("user", "user")
	ports := map[string]bool{base[strings.LastIndex(base, ":")+1:]: true}
	for name, c := range m.daemons {
		found := listening(t, c.Process.Pid)
		if len(found) == 0 {
			t.Errorf("%s listens on no port", name)
		}
		for _, p := range found {
			ports[p] = true
		}
	}
	var answered atomic.Int32
	var asked sync.WaitGroup
	for port := range ports {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodOptions} {
			for _, path := range []string{"/metrics", "/healthz", "/login", "/", "/v1/purchases"} {
				asked.Go(func() { // those of the mesh do not answer
					if status(port, method, path, "localhost") == http.StatusOK {
						answered.Add(1)
					}
					if got := status(port, method, path, "evil.example"); got != 0 && got != http.StatusMisdirectedRequest {
						t.Errorf("%s %s on port %s: %d", method, path, port, got)
					}
				})
			}
		}
	}
	asked.Wait()
	if answered.Load() < 2*sites { // metrics and health of at least these daemons
		t.Errorf("%d answers for localhost, of %d ports", answered.Load(), len(ports))
	}
}

// status is what a port answers; 0: not HTTP.
func status(port, method, path, host string) int {
	c, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		return 0
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(waitTime))
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", method, path, host)
	b, _ := io.ReadAll(io.LimitReader(c, 64)) // a port of the mesh closes it
	f := strings.Fields(string(b))
	if len(f) < 2 || !strings.HasPrefix(f[0], "HTTP/") {
		return 0
	}
	n, _ := strconv.Atoi(f[1])
	return n
}

// listening are the TCP ports on which a process listens.
func listening(t *testing.T, pid int) (ports []string) {
	t.Helper()
	mine := map[string]bool{}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if to, err := os.Readlink(f); err == nil {
			mine[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
		}
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "0A" || !mine[f[9]] {
				continue
			}
			_, port, _ := strings.Cut(f[1], ":")
			n, err := strconv.ParseUint(port, 16, 16)
			if err != nil {
				t.Fatal(err)
			}
			ports = append(ports, fmt.Sprint(n))
		}
	}
	return ports
}

// anotherAccount has another user of the machine ask the loopback port. Only root can try that.
func anotherAccount(t *testing.T, m *market) {
	if os.Getuid() != 0 {
		t.Log("NOT TRIED: another account needs root")
		return
	}
	base, link := m.pages("user", "user")
	ask := func(uid uint32, url string) string {
		c := exec.Command("curl", "-s", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", url)
		c.Dir = "/"
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, NoSetGroups: true}}
		out, _ := c.Output() // its code is that of the connection
		return string(out)
	}
	for _, url := range []string{base + "/login", base + "/", link} {
		if got := ask(65534, url); got != "000" {
			t.Errorf("another account gets %s from %s", got, url)
		}
	}
	if got := ask(0, base+"/login"); got != "200" {
		t.Errorf("this account gets %s", got)
	}
}

// behindNginx reads and orders through a real proxy that buffers, below a prefix.
func behindNginx(t *testing.T, m *market) {
	dir := t.TempDir()
	conf := filepath.Join(dir, "nginx.conf")
	user := ""
	if os.Getuid() == 0 {
		user = "user root;"
	}
	text := fmt.Sprintf(`%s daemon off; pid %[2]s/pid; error_log %[2]s/error.log;
events {}
http { access_log off; client_body_temp_path %[2]s/body; proxy_temp_path %[2]s/proxy; fastcgi_temp_path %[2]s/f; uwsgi_temp_path %[2]s/u; scgi_temp_path %[2]s/s;
  server { listen 127.0.0.1:%[3]s;
    location %[4]s/ { proxy_pass http://unix:%[5]s; proxy_set_header Host $http_host; proxy_http_version 1.1; } } }
`, user, dir, m.proxy[strings.LastIndex(m.proxy, ":")+1:], proxyPrefix, filepath.Join(m.dir, "site2", "web.sock"))
	m.must(os.WriteFile(conf, []byte(text), 0o600))
	c := exec.Command("nginx", "-p", dir, "-c", conf)
	var said bytes.Buffer
	c.Stderr = &said
	m.must(c.Start())
	t.Cleanup(func() { _ = c.Process.Signal(syscall.SIGTERM); _ = c.Wait() })
	m.await("nginx to listen", func() bool {
		l, err := net.Dial("tcp", "127.0.0.1"+m.proxy[strings.LastIndex(m.proxy, ":"):])
		return err == nil && l.Close() == nil
	})
	link := strings.TrimSpace(m.run("resource", "web", "--socket", "--dir", "site2"))
	if !strings.HasPrefix(link, m.proxy+proxyPrefix+"/login#") {
		t.Fatalf("the link is %s", link)
	}
	b := newBrowser(t, chromedp.Flag("host-resolver-rules", "MAP "+proxyHost+" 127.0.0.1"),
		chromedp.Flag("unsafely-treat-insecure-origin-as-secure", m.proxy)) // people have a certificate there
	b.open(link)
	b.sees("Sales: open.")
	b.follow("Calendar")
	b.sees("Cores over the next")
	value[bool](b, `(fetch(document.querySelector('#events').getAttribute('hx-sse:connect')).then(async r=>{window.first=new TextDecoder().decode((await r.body.getReader().read()).value)}),true)`)
	b.await("an event, at once", "window.first && window.first.includes('retry')")
	b.open(m.proxy + proxyPrefix + "/drain")
	b.fill("why", "moving")
	b.press("Stop selling")
	b.sees("Sales: drained.")
	b.press("Sell again")
	b.sees("Sales: open.")
	b.quiet(strings.TrimPrefix(m.proxy, "http://"))
}

// withoutCookies refuses every cookie: the page says what to do.
func withoutCookies(t *testing.T, m *market) {
	dir := t.TempDir()
	m.must(os.MkdirAll(filepath.Join(dir, "Default"), 0o700))
	m.must(os.WriteFile(filepath.Join(dir, "Default", "Preferences"), []byte(`{"profile":{"default_content_setting_values":{"cookies":2}}}`), 0o600))
	_, link := m.pages("user", "user")
	b := newBrowser(t, chromedp.UserDataDir(dir))
	b.open(link)
	b.sees("did not keep the cookie")
	b.sees("ramp user web --dir")
}

// wrongClock has a browser whose clock is an hour off, either way. Countdowns begin when the
// page came, so they are right.
func wrongClock(t *testing.T, m *market) {
	for _, hours := range []int{-1, 1} {
		b := newBrowser(t)
		_, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: fmt.Sprintf("{const D=Date;window.Date=class extends D{constructor(...a){a.length?super(...a):super(D.now()+%d*36e5)}static now(){return D.now()+%[1]d*36e5}}}", hours)})
		m.must(err)
		base := m.enter(b, "user", "user")
		b.open(base + "/compose")
		if off := value[float64](b, "Date.now()/36e5") - float64(time.Now().UnixMilli())/36e5; off*float64(hours) < 0.9 {
			t.Fatalf("the browser's clock is %.2f h off", off)
		}
		composed(b, base, "clock", "4", "30")
		b.press("Ask the market")
		b.sees("Your decision")
		b.await("a countdown", `[...document.querySelectorAll('[data-left]')].some(e=>{const s=/^\((?:(\d+) min )?(\d+) s left\)$/.exec(e.innerText);return s&&Number(s[1]||0)<=30&&(Number(s[1]||0)>0||Number(s[2])>0)})`)
		b.press("Do not buy")
		b.sees("State: failed.")
	}
}
