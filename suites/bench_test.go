package suites_test
import ("testing";"plumb/choice";"plumb/script";"fmt";"time";"sort")
func BenchmarkDraw(b *testing.B){
 tests:=load(b)
 i:=0
 for b.Loop(){ t:=tests[i%len(tests)]; if _,err:=t.Draw(choice.New(uint64(i)),script.Env{Signatures:table{}});err!=nil{b.Fatal(err)}; i++ }
}
func TestTimes(t *testing.T){
 var ts []time.Duration
 for range 5 { for i,x:=range load(t){ s:=time.Now(); x.Draw(choice.New(uint64(i)),script.Env{Signatures:table{}}); ts=append(ts,time.Since(s)) } }
 sort.Slice(ts,func(i,j int)bool{return ts[i]<ts[j]})
 fmt.Println(len(ts), ts[len(ts)/2], ts[len(ts)*9/10], ts[len(ts)-1])
 s:=time.Now(); load(t); fmt.Println("load all", time.Since(s))
}
